// A readable page for each operation of the OpenAPI document, and one that lists them, as Markdown: they are rendered
// like all other pages.

/** Depth to which the members of a body are listed; beyond that, readers need the document itself. */
const depthMax = 4;

/** The list of all operations, then a page for each: `{source, title, text}`. */
export function apiPages(document) {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })),
  );
  return [
    { source: 'docs/api/index.md', title: 'All operations', text: listOf(operations) },
    ...operations.map(operation => ({
      source: `docs/api/${operation.operationId}.md`,
      title: operation.operationId,
      text: pageOf(operation, document.components),
    })),
  ];
}

const cell = text => String(text).replaceAll('|', '\\|').replaceAll('\n', ' ').replaceAll('<', '&lt;');
const row = cells => `| ${cells.join(' | ')} |`;
const table = (head, rows) => [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n');

function listOf(operations) {
  const tags = [...new Set(operations.map(({ tags: [tag] }) => tag))].sort();
  const part = tag => {
    const rows = operations
      .filter(operation => operation.tags[0] === tag)
      .map(({ operationId, method, path, summary, deprecated }) => [
        `[\`${method} ${path}\`](${operationId}.md)`,
        `${cell(summary)}${deprecated ? ' (deprecated)' : ''}`,
      ]);
    return `## ${tag}\n\n${table(['Operation', 'What it does'], rows)}`;
  };
  return `# All operations

Every operation of the platform's API, from the document that the installation also serves at \`/openapi.json\`
([as a file](../openapi.json)). [Platform API](../platform-api.md) has what is true of all of them: credentials, errors,
limits.

${tags.map(part).join('\n\n')}
`;
}

function pageOf(operation, components) {
  const { method, path, summary, parameters = [], requestBody, responses } = operation;
  const { schema, example } = requestBody?.content?.['application/json'] ?? {};
  const parts = [
    `# ${cell(summary)}`,
    `\`${method} ${path}\` · \`${operation.operationId}\`${operation.deprecated ? ' · deprecated' : ''}`,
    credentials(operation, components.securitySchemes),
    ...(parameters.length > 0 ? ['## Parameters', parameterTable(parameters)] : []),
    ...(requestBody ? ['## Body', bodyText(requestBody, components)] : []),
    '## Answers',
    answerTable(responses, components),
    ...successTables(responses, components),
    '## By curl',
    `\`\`\`\n${curl(operation, example ?? (schema && exampleOf(schema, components)))}\n\`\`\``,
    '[All operations](index.md)',
  ];
  return `${parts.join('\n\n')}\n`;
}

function credentials({ security, ...operation }, schemes) {
  if (security.length === 0) return 'Anybody may call it.';
  const ways = security.map(way =>
    Object.keys(way)
      .map(name => cell(schemes[name].description.split(':')[0]))
      .join(', and with it: '),
  );
  const role = operation['x-atoll-role'];
  return [
    `Takes one of these credentials ([which is which](../platform-api.md#credentials)):`,
    ...[...new Set(ways)].map(way => `- ${way}`),
    ...(role ? ['', `A person needs the role *${role}* in the team, or more.`] : []),
    ...(operation['x-atoll-proof'] ? ['', 'A session has to have proven lately whose it is.'] : []),
  ].join('\n');
}

const parameterTable = parameters =>
  table(
    ['Name', 'In', 'Type', ''],
    parameters.map(({ name, in: place, required, schema, description }) => [
      `\`${name}\``,
      `${place}${required ? ', required' : ''}`,
      typeOf(schema),
      notes(schema, description),
    ]),
  );

function bodyText({ required, content }, components) {
  const [[type, { schema }]] = Object.entries(content);
  const intro = `${type}${required ? '' : ', may be left out'}.`;
  return [intro, membersTable(schema, components)].filter(text => text !== '').join('\n\n');
}

const resolved = (schema, { schemas, responses }) => {
  const [, , kind, name] = schema.$ref?.split('/') ?? [];
  return name === undefined ? schema : kind === 'responses' ? responses[name] : schemas[name];
};

const answerTable = (responses, components) =>
  table(
    ['Status', 'Meaning'],
    Object.entries(responses).map(([status, response]) => [status, cell(resolved(response, components).description)]),
  );

function successTables(responses, components) {
  return Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .flatMap(([status, response]) => {
      const schema = resolved(response, components).content?.['application/json']?.schema;
      const members = schema ? membersTable(schema, components) : '';
      return members === '' ? [] : [`### Body of ${status}`, members];
    });
}

/** The members of a schema, with those of nested objects below them. */
function membersTable(schema, components) {
  const rows = membersOf(schema, components, '', 0);
  return rows.length === 0 ? '' : table(['Member', 'Type', ''], rows);
}

function membersOf(given, components, prefix, depth) {
  const schema = resolved(given, components);
  if (depth >= depthMax) return [];
  if (schema.type === 'array') return membersOf(schema.items ?? {}, components, `${prefix}[]`, depth);
  const alternatives = (schema.anyOf ?? []).filter(({ type }) => type !== 'null');
  if (alternatives.length === 1) return membersOf(alternatives[0], components, prefix, depth);
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    const itself = resolved(member, components);
    const required = schema.required?.includes(name) ? ', required' : '';
    return [
      [`\`${path}\``, `${typeOf(itself)}${required}`, notes(itself, member.description ?? itself.description)],
      ...membersOf(itself, components, path, depth + 1),
    ];
  });
}

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split('/').pop();
  if (schema.const !== undefined) return `\`${cell(schema.const)}\``;
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeOf))].join(' or ');
  if (schema.type === 'array') return `list of ${typeOf(schema.items ?? {})}`;
  return schema.type ?? 'anything';
}

/** What a schema says besides its type. */
function notes(schema, description) {
  const values = schema.enum ?? schema.items?.enum;
  const range = [
    schema.minimum !== undefined && `at least ${schema.minimum}`,
    schema.maximum !== undefined && `up to ${schema.maximum}`,
    schema.minLength !== undefined && `from ${schema.minLength} characters`,
    schema.maxLength !== undefined && `up to ${schema.maxLength} characters`,
    schema.maxItems !== undefined && `up to ${schema.maxItems} of them`,
    schema.default !== undefined && `default \`${cell(JSON.stringify(schema.default))}\``,
  ].filter(Boolean);
  return [
    description && cell(description),
    values && `One of ${values.map(value => `\`${cell(value)}\``).join(', ')}`,
    range.length > 0 && range.join(', '),
  ]
    .filter(Boolean)
    .join('. ');
}

/** A valid value of the schema, with only its required members. */
function exampleOf(given, components) {
  const schema = resolved(given, components);
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return exampleOf(schema.anyOf[0], components);
  if (schema.type === 'array') return schema.minItems ? [exampleOf(schema.items ?? {}, components)] : [];
  if (schema.type === 'object') {
    const members = (schema.required ?? []).map(name => [name, exampleOf(schema.properties?.[name] ?? {}, components)]);
    return Object.fromEntries(members);
  }
  if (schema.type === 'integer' || schema.type === 'number') return schema.minimum ?? 1;
  return schema.type === 'boolean' ? true : '…';
}

function curl({ method, path, security, requestBody }, example) {
  const credential = Object.keys(security[0] ?? {})[0];
  const headers = {
    apiKey: '-H "X-API-Key: $E2B_API_KEY"',
    adminToken: '-H "X-Admin-Token: $ADMIN_TOKEN"',
    accessToken: '-H "Authorization: Bearer $ACCESS_TOKEN"',
    volumeToken: '-H "Authorization: Bearer $VOLUME_TOKEN"',
    metricsToken: '-H "Authorization: Bearer $METRICS_TOKEN"',
  };
  const sent = Object.keys(requestBody?.content ?? {})[0];
  return [
    `curl -X ${method} "$E2B_API_URL${path.replaceAll(/\{(\w+)\}/g, (_, name) => `$${name}`)}"`,
    headers[credential],
    example !== undefined && `-H 'Content-Type: application/json' -d '${JSON.stringify(example)}'`,
    sent !== undefined && example === undefined && `-H 'Content-Type: ${sent}' --data-binary @FILE`,
  ]
    .filter(Boolean)
    .join(' \\\n  ');
}
