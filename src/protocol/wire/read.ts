import { Kind, OptionalKind, type TSchema } from '@sinclair/typebox';
import { digestFormat, identifierFormat, lineFormat } from './schema.ts';

/** Why a value does not fit its schema: where in it, and what is missing there. */
export class Wrong {
  readonly path: string;
  readonly mustBe: string;
  constructor(mustBe: string, path = '') {
    this.mustBe = mustBe;
    this.path = path;
  }

  within(name: string | number): Wrong {
    return new Wrong(this.mustBe, `.${name}${this.path}`);
  }
}

/**
 * Checks a value and copies the members that the schema names: nothing else crosses the wire, even where the compiler
 * lets a larger object pass for a smaller one.
 */
export type Read = (value: unknown) => unknown;

type Described = TSchema & {
  properties?: Record<string, TSchema>;
  additionalProperties?: TSchema;
  items?: TSchema | TSchema[];
  anyOf?: TSchema[];
  const?: unknown;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  format?: string;
  maxItems?: number;
};

/**
 * Makes the reader of a schema. It knows those schemas of TypeBox that the protocol uses, and throws at once for any
 * other. (TypeBox's own compiler mistakes the keys of an inner map for those of the outer one.)
 */
export function readerOf(schema: Described): Read {
  switch (schema[Kind]) {
    case 'Union':
      return readUnion(schema.anyOf ?? []);
    case 'Object':
      return schema.additionalProperties ? readMap(schema.additionalProperties) : readObject(schema.properties ?? {});
    case 'Array':
      return readArray(schema.items as TSchema, schema.maxItems ?? Number.POSITIVE_INFINITY);
    case 'Tuple':
      return readTuple(schema.items as TSchema[]);
    case 'Literal':
      return value => (value === schema.const ? value : new Wrong(JSON.stringify(schema.const)));
    case 'String':
      return readText(schema.maxLength ?? Number.POSITIVE_INFINITY, schema.format);
    case 'Number':
      return value => (typeof value === 'number' && Number.isFinite(value) ? value : new Wrong('a number'));
    case 'Integer':
      return readInteger(schema.minimum ?? Number.MIN_SAFE_INTEGER, schema.maximum ?? Number.MAX_SAFE_INTEGER);
    case 'Boolean':
      return value => (typeof value === 'boolean' ? value : new Wrong('true or false'));
    case 'Null':
      return value => (value === null ? value : new Wrong('null'));
    // A function that promises nothing may return anything: none of it is sent.
    case 'Void':
      return () => undefined;
    case 'Unknown':
      return value => value;
    default:
      throw new Error(`invariant broken: the wire has no schema of kind ${String(schema[Kind])}`);
  }
}

/** The forms that a text may be required to have, by their names in schemas. */
const forms: Record<string, { pattern: RegExp; mustBe: string }> = {
  [identifierFormat]: { pattern: /^[0-9A-Za-z][0-9A-Za-z_.-]*$/, mustBe: 'an identifier' },
  [lineFormat]: { pattern: /^[^\p{Cc}]*$/u, mustBe: 'a line of text' },
  [digestFormat]: { pattern: /^sha256:[0-9a-f]{64}$/, mustBe: 'a digest' },
};

function readText(lengthMax: number, format: string | undefined): Read {
  const form = format === undefined ? undefined : forms[format];
  if (format !== undefined && form === undefined) throw new Error(`invariant broken: the wire has no format ${format}`);
  return value => {
    if (typeof value !== 'string') return new Wrong('a text');
    if (value.length > lengthMax) return new Wrong(`a text of up to ${lengthMax} characters`);
    return form === undefined || form.pattern.test(value) ? value : new Wrong(form.mustBe);
  };
}

function readInteger(minimum: number, maximum: number): Read {
  return value =>
    Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum
      ? value
      : new Wrong(`a whole number from ${minimum} to ${maximum}`);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function readObject(properties: Record<string, TSchema>): Read {
  const members = Object.entries(properties).map(([name, schema]) => ({
    name,
    isOptional: OptionalKind in schema,
    read: readerOf(schema),
  }));
  return value => {
    if (!isObject(value)) return new Wrong('an object');
    const result: Record<string, unknown> = {};
    for (const { name, isOptional, read } of members) {
      const member = Object.hasOwn(value, name) ? value[name] : undefined;
      if (member === undefined && isOptional) continue;
      const known = read(member);
      if (known instanceof Wrong) return known.within(name);
      result[name] = known;
    }
    return result;
  };
}

function readMap(items: TSchema): Read {
  const read = readerOf(items);
  return value => {
    if (!isObject(value)) return new Wrong('an object');
    const entries: [string, unknown][] = [];
    for (const [key, item] of Object.entries(value)) {
      const known = read(item);
      if (known instanceof Wrong) return known.within(key);
      entries.push([key, known]);
    }
    // Entries and not assignments: a key may be `__proto__`.
    return Object.fromEntries(entries);
  };
}

function readArray(items: TSchema, itemsMax: number): Read {
  const read = readerOf(items);
  return value => {
    if (!Array.isArray(value)) return new Wrong('a list');
    if (value.length > itemsMax) return new Wrong(`a list of up to ${itemsMax}`);
    const result: unknown[] = [];
    for (const [index, item] of value.entries()) {
      const known = read(item);
      if (known instanceof Wrong) return known.within(index);
      result.push(known);
    }
    return result;
  };
}

function readTuple(items: TSchema[]): Read {
  const reads = items.map(readerOf);
  return value => {
    if (!Array.isArray(value) || value.length !== reads.length) return new Wrong(`a list of ${reads.length}`);
    const result: unknown[] = [];
    for (const [index, read] of reads.entries()) {
      const known = read(value[index]);
      if (known instanceof Wrong) return known.within(index);
      result.push(known);
    }
    return result;
  };
}

function readUnion(schemas: TSchema[]): Read {
  const reads = schemas.map(readerOf);
  return value => {
    let deepest: Wrong | undefined;
    for (const read of reads) {
      const known = read(value);
      if (!(known instanceof Wrong)) return known;
      // The alternative that fits furthest is the one that was meant.
      if (deepest === undefined || known.path.length > deepest.path.length) deepest = known;
    }
    return deepest ?? new Wrong('nothing');
  };
}
