import { FormatRegistry, Kind, OptionalKind } from '@sinclair/typebox';
import type { TObject, TSchema } from '@sinclair/typebox';
import { TypeCompiler, ValueErrorType } from '@sinclair/typebox/compiler';
import type { TypeCheck, ValueError } from '@sinclair/typebox/compiler';
import { AtollError, assert } from '../../base/error.ts';

FormatRegistry.Set('date-time', text => !Number.isNaN(Date.parse(text)));
FormatRegistry.Set('uuid', text => /^[0-9a-f-]{36}$/.test(text));

/** How many characters of a member's name a message repeats. */
const nameCharactersShown = 64;

/**
 * Answers the value with only the members that its schema knows, or throws `invalid` naming the member and the rule.
 */
export type Validator = (value: unknown) => unknown;

/** What to do with members that a schema does not name. */
type Unknown = 'drop' | 'refuse';

/** The validator of requests. `whole` names the value itself in errors, e.g. `request body`. */
export function validator(schema: TSchema, whole: string, unknown: Unknown = 'drop'): Validator {
  const check = knownChecker(schema, whole);
  return value => {
    if (unknown === 'refuse') refuseUnknown(schema, value, '');
    const known = check(value);
    refuseNul(schema, known, '');
    return known;
  };
}

function knownChecker(schema: TSchema, whole: string): Validator {
  const check = TypeCompiler.Compile(schema);
  return value => {
    const known = keepKnown(schema, value);
    if (check.Check(known)) return known;
    throw new AtollError('invalid', explain(check, known, whole));
  };
}

/**
 * PostgreSQL can't store a text with a NUL character, and programs and files don't take one. Values of maps are the
 * caller's data, which is kept as JSON.
 */
function refuseNul(schema: TSchema | undefined, value: unknown, pointer: string): void {
  if (typeof value === 'string' && value.includes('\0'))
    throw new AtollError('invalid', `${fieldOf(pointer)}: must not hold a NUL character`);
  if (Array.isArray(value)) {
    const items = schema?.['items'] as TSchema | undefined;
    for (const [index, item] of value.entries()) refuseNul(items, item, `${pointer}/${index}`);
  } else if (typeof value === 'object' && value !== null && schema?.[Kind] === 'Object') {
    const { properties } = schema as TObject;
    for (const [key, member] of Object.entries(value))
      if (Object.hasOwn(properties, key)) refuseNul(properties[key], member, `${pointer}/${key}`);
  }
}

/** Throws when an answer differs from its documentation: a member too few, too many or of another type. For tests. */
export function answerChecker(schema: TSchema, whole: string): (value: unknown) => void {
  const validate = knownChecker(schema, whole);
  return value => {
    // A client reads the JSON of the answer, which leaves out undefined members.
    const sent = JSON.stringify(value);
    const known = JSON.stringify(validate(JSON.parse(sent)));
    assert(known.length === sent.length, `${whole} has members that are not documented: ${sent}`);
  };
}

/**
 * Drops members that the schema does not name, and null for an optional member that can't be null itself (null means
 * "not given"). Maps keep all their keys; `Object.fromEntries` defines even a key like `__proto__` as plain data.
 */
function keepKnown(schema: TSchema, value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = schema['items'] as TSchema | undefined;
    return items ? value.map(item => keepKnown(items, item)) : value;
  }
  if (schema[Kind] !== 'Object' || typeof value !== 'object' || value === null) return value;
  const { properties, additionalProperties } = schema as TObject;
  const members: Array<[string, unknown]> = [];
  for (const [key, member] of Object.entries(value)) {
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (known) {
      if (member !== null || known[OptionalKind] === undefined || mayBeNull(known))
        members.push([key, keepKnown(known, member)]);
    } else if (typeof additionalProperties === 'object') {
      members.push([key, keepKnown(additionalProperties, member)]);
    } else if (additionalProperties === true) {
      members.push([key, member]);
    }
  }
  return Object.fromEntries(members);
}

/** A caller who misspells a member must not believe that something has changed. */
function refuseUnknown(schema: TSchema, value: unknown, pointer: string): void {
  if (schema[Kind] !== 'Object' || typeof value !== 'object' || value === null || Array.isArray(value)) return;
  const { properties, additionalProperties } = schema as TObject;
  for (const [key, member] of Object.entries(value)) {
    const path = `${pointer}/${key.slice(0, nameCharactersShown).replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (known) refuseUnknown(known, member, path);
    else if (additionalProperties === undefined || additionalProperties === false) {
      throw new AtollError(
        'invalid',
        `${fieldOf(path)}: there is no such member; there are ${Object.keys(properties).join(', ')}`,
      );
    }
  }
}

function mayBeNull(schema: TSchema): boolean {
  return ((schema['anyOf'] as TSchema[] | undefined) ?? []).some(branch => branch[Kind] === 'Null');
}

function explain(check: TypeCheck<TSchema>, value: unknown, whole: string): string {
  const error = check.Errors(value).First();
  if (!error) return `${whole}: is not valid`;
  return `${fieldOf(error.path) || whole}: ${ruleOf(error)}`;
}

/** `/network/allowOut/0` → `network.allowOut[0]`. */
function fieldOf(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part, index) =>
      /^\d+$/.test(part) ? `[${part}]` : /^[\w-]+$/.test(part) ? `${index === 0 ? '' : '.'}${part}` : `["${part}"]`,
    )
    .join('');
}

function ruleOf({ type, schema, value, errors }: ValueError): string {
  switch (type) {
    case ValueErrorType.ObjectRequiredProperty:
      return 'is required';
    case ValueErrorType.IntegerMinimum:
      return `must be at least ${schema['minimum']}, not ${value}`;
    case ValueErrorType.IntegerMaximum:
      return `must be at most ${schema['maximum']}, not ${value}`;
    case ValueErrorType.Literal:
      return `must be ${schema['const']}${reasonOf(schema)}`;
    case ValueErrorType.ArrayMaxItems:
      return schema['maxItems'] === 0
        ? `must be empty${reasonOf(schema)}`
        : `must have at most ${schema['maxItems']} entries`;
    case ValueErrorType.StringMaxLength:
      return `must have at most ${schema['maxLength']} characters`;
    case ValueErrorType.StringMinLength:
      return `must have at least ${schema['minLength']} characters`;
    case ValueErrorType.Union: {
      const words = errors.map(branch => branch.First()?.schema['const']).filter(word => word !== undefined);
      return words.length > 0 ? `must be one of ${words.join(', ')}` : 'has the wrong type';
    }
    default: {
      const form = schema['pattern'] === undefined ? '' : ` matching ${schema['pattern']}`;
      return `must be ${article(String(schema['type'] ?? 'value'))}${form}`;
    }
  }
}

/**
 * A member with a single allowed value exists because clients send it; its description says why no other value is
 * possible.
 */
function reasonOf({ description }: TSchema): string {
  return description === undefined ? '' : ` (${description})`;
}

function article(type: string): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}
