// The operations of the API's document as TypeScript: a type for each, and a table that says how to call each.

/** The text of `clients/typescript/src/operations.ts`. */
export function typescriptOf(document) {
  const operations = Object.entries(document.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
    )
    .sort((a, b) => (a.operationId < b.operationId ? -1 : 1));
  return `// Made from the API's document by \`node scripts/client.mjs\`. Changes here are lost.

import type { Bytes } from './bytes.ts';

/** What requests and answers hold, by the names of the API's document. */
export interface Schemas {
${members(document.components.schemas, () => true)}}

/** Each operation of the API: what it takes and what it answers. */
export interface Operations {
${operations.map(operationType).join('')}}

/** The operations that are followed: each gives what its answer is, again and again. */
export type Streams = ${operations
    .filter(operation => answerOf(operation).kind === 'events')
    .map(({ operationId }) => literal(operationId))
    .join(' | ')};

/** How an operation is asked: by method, path, and where the members of its request go. */
export type Wire = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: readonly string[];
  /** Members of the request that are headers, with the headers' names. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: 'json' | 'bytes';
  readonly answer: Answer;
};

/** How a successful answer is read. */
export type Answer = 'nothing' | 'json' | 'text' | 'bytes' | 'events';

/** All operations, by name. */
export const wires: { readonly [Name in keyof Operations]: Wire } = {
${operations.map(wire).join('')}};
`;
}

function operationType(operation) {
  const { operationId, summary, parameters = [], requestBody } = operation;
  const request = {};
  const needed = new Set();
  for (const { name, required, description, schema } of parameters) {
    request[memberOf(name)] = { ...schema, ...(description && { description }) };
    if (required) needed.add(memberOf(name));
  }
  const body = bodyOf(requestBody);
  if (body) {
    request.body = body.schema;
    if (requestBody.required) needed.add('body');
  }
  return `${comment([summary, operation.deprecated && '@deprecated'], '  ')}  ${operationId}: {
    request: ${Object.keys(request).length === 0 ? 'Record<never, never>' : `{\n${members(request, name => needed.has(name), '      ')}    }`};
    answer: ${answerType(operation)};
  };
`;
}

/** A header's name as the name of a member: \`idempotency-key\` is \`idempotencyKey\`. */
const memberOf = name => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());

function wire({ operationId, method, path, parameters = [], requestBody, ...operation }) {
  const named = place => parameters.filter(({ in: where }) => where === place).map(({ name }) => name);
  const headers = named('header').map(name => `${memberOf(name)}: '${name}'`);
  const query = named('query').map(name => `'${name}'`);
  const parts = [
    `method: '${method.toUpperCase()}'`,
    `path: '${path}'`,
    query.length > 0 && `query: [${query.join(', ')}]`,
    headers.length > 0 && `headers: { ${headers.join(', ')} }`,
    requestBody && `body: '${bodyOf(requestBody).kind}'`,
    `answer: '${answerOf(operation).kind}'`,
  ];
  return `  ${operationId}: { ${parts.filter(Boolean).join(', ')} },\n`;
}

function bodyOf(requestBody) {
  if (!requestBody) return undefined;
  const { 'application/json': json } = requestBody.content;
  return json ? { kind: 'json', schema: json.schema } : { kind: 'bytes', schema: { format: 'binary', type: 'string' } };
}

/** The result of a success: all answers with a body have the same kind. */
function answerOf({ responses }) {
  const successes = Object.entries(responses).filter(([status]) => status.startsWith('2'));
  const contents = successes.flatMap(([, { content }]) => Object.entries(content ?? {}));
  const [[type] = []] = contents;
  const kinds = { 'application/json': 'json', 'text/event-stream': 'events', 'application/octet-stream': 'bytes' };
  if (type === undefined) return { kind: 'nothing', schemas: [] };
  const kind = kinds[type] ?? 'text';
  // The schema of a stream describes each of its events.
  return {
    kind,
    schemas: contents.map(([, content]) => (kind === 'events' ? content['x-atoll-event'] : content.schema)),
  };
}

function answerType(operation) {
  const { kind, schemas } = answerOf(operation);
  const types = { nothing: 'void', text: 'string', bytes: 'ReadableStream<Uint8Array>' };
  return types[kind] ?? [...new Set(schemas.map(schema => typeOf(schema, '    ')))].join(' | ');
}

function members(properties, isRequired, indent = '  ') {
  return Object.entries(properties)
    .map(([name, schema]) => {
      const key = /^[A-Za-z_]\w*$/.test(name) ? name : `'${name}'`;
      const type = typeOf(schema, indent);
      const required = isRequired(name);
      return `${comment([schema.description, bounds(schema)], indent)}${indent}${key}${required ? '' : '?'}: ${type}${required ? '' : ' | undefined'};\n`;
    })
    .join('');
}

/** The bounds of a value, in words. */
function bounds({ minimum, maximum, minLength, maxLength, maxItems, default: usual, format }) {
  const parts = [
    minimum !== undefined && Math.abs(minimum) < 2 ** 31 && `at least ${minimum}`,
    maximum !== undefined && maximum < 2 ** 31 - 1 && `at most ${maximum}`,
    minLength !== undefined && `at least ${minLength} characters`,
    maxLength !== undefined && `at most ${maxLength} characters`,
    maxItems !== undefined && `at most ${maxItems} of them`,
    usual !== undefined && `default ${JSON.stringify(usual)}`,
    format === 'date-time' && 'a time as RFC 3339 has it',
  ];
  return parts.filter(Boolean).join(', ');
}

function comment(lines, indent) {
  const text = lines.filter(Boolean).join('; ').replaceAll('*/', '*\\/');
  return text === '' ? '' : `${indent}/** ${text} */\n`;
}

function typeOf(schema, indent) {
  if (schema.$ref) return `Schemas['${schema.$ref.split('/').pop()}']`;
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(' | ');
  if (schema.anyOf) return [...new Set(schema.anyOf.map(part => typeOf(part, indent)))].join(' | ');
  switch (schema.type) {
    case 'string':
      return schema.format === 'binary' ? 'Bytes' : 'string';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
    case 'null':
      return schema.type;
    case 'array':
      return `Array<${typeOf(schema.items ?? {}, indent)}>`;
    case 'object':
      return objectType(schema, indent);
    default:
      return 'unknown';
  }
}

function objectType({ properties, required = [], additionalProperties }, indent) {
  if (properties && Object.keys(properties).length > 0)
    return `{\n${members(properties, name => required.includes(name), `${indent}  `)}${indent}}`;
  const values = typeof additionalProperties === 'object' ? typeOf(additionalProperties, indent) : 'unknown';
  return `Record<string, ${values}>`;
}

const literal = value => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value));
