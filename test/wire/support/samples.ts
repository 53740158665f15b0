import { digestFormat } from '../../../src/protocol/wire/schema.ts';
import { Kind, OptionalKind, type TSchema } from '@sinclair/typebox';

type Described = TSchema & {
  properties?: Record<string, TSchema>;
  additionalProperties?: TSchema;
  items?: TSchema | TSchema[];
  anyOf?: TSchema[];
  const?: unknown;
  minimum?: number;
  format?: string;
};

/** A value that fits a schema, with everything that is optional. */
export function sampleOf(schema: Described): unknown {
  switch (schema[Kind]) {
    case 'Union':
      return sampleOf(schema.anyOf?.[0] as TSchema);
    case 'Object':
      if (schema.additionalProperties) return { 'a key': sampleOf(schema.additionalProperties) };
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, member]) => [name, sampleOf(member)]),
      );
    case 'Array':
      return [sampleOf(schema.items as TSchema)];
    case 'Tuple':
      return (schema.items as TSchema[]).map(sampleOf);
    case 'Literal':
      return schema.const;
    case 'String':
      return schema.format === digestFormat ? `sha256:${'a'.repeat(64)}` : 'text';
    case 'Number':
      return 1.5;
    case 'Integer':
      return schema.minimum ?? 0;
    case 'Boolean':
      return true;
    case 'Null':
      return null;
    case 'Void':
      return undefined;
    default:
      throw new Error(`no sample of kind ${schema[Kind]}`);
  }
}

/** Values that don't fit it: another type and, for an object, each member missing or of another type. */
export function wrongOf(schema: Described): unknown[] {
  switch (schema[Kind]) {
    case 'Void':
      return [];
    case 'String':
      return [
        1,
        null,
        ['text'],
        ...(schema.format === undefined
          ? []
          : ['', '.', '..', '../up', '/root', 'a/b', 'a\0b', 'a\n', '-o', 'x'.repeat(129)]),
      ];
    case 'Number':
    case 'Integer':
      return ['1', null, { a: 1 }];
    case 'Object': {
      if (schema.additionalProperties)
        return ['text', [], null, ...wrongOf(schema.additionalProperties).map(wrong => ({ 'a key': wrong }))];
      const sample = sampleOf(schema) as Record<string, unknown>;
      return [
        'text',
        null,
        ...Object.entries(schema.properties ?? {}).flatMap(([name, member]) => [
          ...(OptionalKind in member
            ? []
            : [Object.fromEntries(Object.entries(sample).filter(([other]) => other !== name))]),
          ...wrongOf(member).map(wrong => ({ ...sample, [name]: wrong })),
        ]),
      ];
    }
    case 'Array':
      return ['text', { 0: 'text' }, ...wrongOf(schema.items as TSchema).map(wrong => [wrong])];
    default:
      return [{ nobody: 'means this' }, 12.25, 'nobody means this'].filter(wrong => !isOf(schema, wrong));
  }
}

function isOf(schema: Described, value: unknown): boolean {
  return (schema.anyOf ?? []).some(
    member =>
      (member[Kind] === 'String' && typeof value === 'string') ||
      (member[Kind] === 'Number' && typeof value === 'number'),
  );
}
