import type { ClientOperations } from './client-operations.ts';

type Schema = {
  $ref?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  patternProperties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
};
type Parameter = { $ref?: string; name: string; in: string };
type Operation = { parameters?: Parameter[]; requestBody?: { content: Record<string, { schema?: Schema }> } };
type Document = {
  paths: Record<string, Record<string, Operation> & { parameters?: Parameter[] }>;
  components: { schemas: Record<string, Schema>; parameters?: Record<string, Parameter> };
};

const methods = ['get', 'put', 'post', 'delete', 'patch'];

/** What an OpenAPI document accepts, in the lines of `ClientOperations`. */
export function operationsOfDocument({ paths, components }: Document): ClientOperations {
  const found: ClientOperations = new Set();
  for (const [path, operations] of Object.entries(paths)) {
    for (const method of methods) {
      const operation = operations[method];
      if (!operation) continue;
      const name = `${method.toUpperCase()} ${path.replace(/\{[^}]*\}/g, '{}')}`;
      found.add(name);
      for (const given of [...(operations.parameters ?? []), ...(operation.parameters ?? [])]) {
        const parameter = given.$ref ? components.parameters?.[nameOf(given.$ref)] : given;
        if (parameter && parameter.in !== 'path')
          found.add(
            `${name} ${parameter.in}.${parameter.in === 'header' ? parameter.name.toLowerCase() : parameter.name}`,
          );
      }
      for (const { schema } of Object.values(operation.requestBody?.content ?? {}))
        for (const field of fieldsOf(schema, components.schemas, new Set())) found.add(`${name} body.${field}`);
    }
  }
  return found;
}

const nameOf = (reference: string) => reference.split('/').at(-1) ?? '';

function fieldsOf(schema: Schema | undefined, schemas: Record<string, Schema>, above: ReadonlySet<string>): string[] {
  if (!schema) return [];
  if (schema.$ref) {
    const name = nameOf(schema.$ref);
    return above.has(name) ? [] : fieldsOf(schemas[name], schemas, new Set([...above, name]));
  }
  const named = [
    ...Object.entries(schema.properties ?? {}),
    ...[schema.additionalProperties, ...Object.values(schema.patternProperties ?? {})].map(
      each => ['*', each] as [string, Schema | boolean | undefined],
    ),
  ].filter((entry): entry is [string, Schema] => typeof entry[1] === 'object');
  return [
    ...named.flatMap(([name, member]) => [name, ...fieldsOf(member, schemas, above).map(field => `${name}.${field}`)]),
    ...[schema.items, ...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])].flatMap(part =>
      fieldsOf(part, schemas, above),
    ),
  ];
}

/** Every member that a body of an OpenAPI document can have, in requests and answers, by its name alone. */
export function membersOfDocument(document: unknown): Set<string> {
  if (typeof document !== 'object' || document === null) return new Set();
  const within = Object.values(document).flatMap(each => [...membersOfDocument(each)]);
  const { properties } = document as Schema;
  return new Set([...Object.keys(properties ?? {}), ...within]);
}
