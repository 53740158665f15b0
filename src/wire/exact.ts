import type { TSchema } from '@sinclair/typebox';
import { TypeCompiler } from '@sinclair/typebox/compiler';

type Exact = (value: unknown) => unknown;
type Described = TSchema & { properties?: Record<string, TSchema>; additionalProperties?: TSchema; items?: TSchema | TSchema[]; anyOf?: TSchema[] };

/**
 * A function that copies of a value what its schema names, and nothing else: what is not in the protocol crosses no wire, even
 * where the compiler lets a larger object pass for a smaller one. To be called with values that fit the schema.
 */
export function exactly(schema: TSchema): Exact {
  return ofSchema(schema) ?? (value => value);
}

/** Undefined where any value that fits is exact already. */
function ofSchema(schema: Described): Exact | undefined {
  if (schema.anyOf) return ofUnion(schema.anyOf);
  if (schema.properties && schema.type === 'object') return schema.additionalProperties ? ofMap(schema.additionalProperties) : ofObject(schema.properties);
  if (Array.isArray(schema.items)) return ofTuple(schema.items);
  if (schema.items) return ofArray(schema.items);
  return undefined;
}

function ofObject(properties: Record<string, TSchema>): Exact {
  const members = Object.entries(properties).map(([name, schema]) => [name, ofSchema(schema)] as const);
  return value => {
    const from = value as Record<string, unknown>;
    const to: Record<string, unknown> = {};
    for (const [name, exact] of members) {
      const member = from[name];
      if (member !== undefined) to[name] = exact ? exact(member) : member;
    }
    return to;
  };
}

function ofMap(items: TSchema): Exact | undefined {
  const exact = ofSchema(items);
  // Entries and not assignments: a key may be `__proto__`.
  return exact && (value => Object.fromEntries(Object.entries(value as Record<string, unknown>).map(([key, item]) => [key, exact(item)])));
}

function ofArray(items: TSchema): Exact | undefined {
  const exact = ofSchema(items);
  return exact && (value => (value as unknown[]).map(exact));
}

function ofTuple(items: TSchema[]): Exact | undefined {
  const exacts = items.map(ofSchema);
  return exacts.every(exact => exact === undefined) ? undefined : value => (value as unknown[]).map((item, index) => exacts[index]?.(item) ?? item);
}

function ofUnion(schemas: TSchema[]): Exact | undefined {
  const members = schemas.map(schema => ({ exact: ofSchema(schema), compiled: TypeCompiler.Compile(schema) }));
  if (members.every(({ exact }) => exact === undefined)) return undefined;
  return value => {
    const member = members.find(({ compiled }) => compiled.Check(value));
    return member?.exact ? member.exact(value) : value;
  };
}
