import { AtollError } from '../../base/error.ts';

/** A protobuf message in its JSON form. Unknown members are ignored; `null` is the same as absent. */
export type Message = { readonly [name: string]: unknown };

/** `value` as a message. Errors: `invalid`, naming `what`, for anything that is not a JSON object. */
export function asMessage(value: unknown, what = 'the message'): Message {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(what, 'an object', value);
  return value as Message;
}

/** A member by its lowerCamelCase name or, as protobuf requires of readers, by its name in the schema (snake_case). */
function member(message: Message, name: string): unknown {
  const value = message[name] ?? message[name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)];
  return value === null ? undefined : value;
}

/** The text of a field; undefined if absent. Errors: `invalid`, naming the field, for another type. */
export function stringField(message: Message, name: string): string | undefined {
  const value = member(message, name);
  if (value !== undefined && typeof value !== 'string') throw wrong(name, 'a string', value);
  return value;
}

/** The boolean of a field; undefined if absent. Errors: `invalid`, naming the field, for another type. */
export function booleanField(message: Message, name: string): boolean | undefined {
  const value = member(message, name);
  if (value !== undefined && typeof value !== 'boolean') throw wrong(name, 'a boolean', value);
  return value;
}

/** A whole number from 0 to 2³²−1; protobuf's JSON also allows it as a string. */
export function uint32Field(message: Message, name: string): number | undefined {
  const value = member(message, name);
  if (value === undefined) return undefined;
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isInteger(number) || number < 0 || number > 0xffff_ffff)
    throw wrong(name, 'a number from 0 to 4294967295', value);
  return number;
}

/** The message in a field; undefined if absent. Errors: `invalid`, naming the field, for another type. */
export function messageField(message: Message, name: string): Message | undefined {
  const value = member(message, name);
  return value === undefined ? undefined : asMessage(value, name);
}

/** The list of texts in a field; empty if absent. Errors: `invalid`, naming the field, for another type. */
export function stringsField(message: Message, name: string): string[] {
  const value = member(message, name) ?? [];
  if (!Array.isArray(value)) throw wrong(name, 'a list of strings', value);
  return value.map(item => (typeof item === 'string' ? item : fail(wrong(name, 'a list of strings', item))));
}

/** The map of texts in a field; empty if absent. Errors: `invalid`, naming the key, for another type. */
export function stringMapField(message: Message, name: string): Record<string, string> {
  const map: Record<string, string> = {};
  for (const [key, value] of Object.entries(asMessage(member(message, name) ?? {}, name))) {
    if (typeof value !== 'string') throw wrong(`${name}.${key}`, 'a string', value);
    map[key] = value;
  }
  return map;
}

/** Bytes from base64 in the standard or the URL alphabet, padded or not. */
export function bytesField(message: Message, name: string): Uint8Array | undefined {
  const text = stringField(message, name);
  return text === undefined ? undefined : Buffer.from(text, 'base64');
}

/** The value of an enum member: by name, or by number as protobuf allows. Undefined if absent. */
export function enumField(message: Message, name: string): string | number | undefined {
  const value = member(message, name);
  if (value !== undefined && typeof value !== 'string' && typeof value !== 'number')
    throw wrong(name, 'a name or a number', value);
  return value;
}

function wrong(what: string, expected: string, value: unknown): AtollError {
  const got = Array.isArray(value) ? 'a list' : value === null ? 'null' : `a ${typeof value}`;
  return new AtollError('invalid', `${what} must be ${expected}, not ${got}`);
}

function fail(error: AtollError): never {
  throw error;
}
