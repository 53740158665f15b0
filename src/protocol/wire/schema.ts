import { Type } from '@sinclair/typebox';
import type { Static, TSchema } from '@sinclair/typebox';

/**
 * Turns intersections of object types into one object type, at every depth, so that the compiler finds equal types
 * equal.
 */
type Flat<T> = T extends readonly (infer Item)[]
  ? Flat<Item>[]
  : T extends object
    ? { -readonly [Name in keyof T]: Flat<T[Name]> }
    : T;

type IsSame<A, B> = (<T>() => T extends Flat<A> ? 1 : 2) extends <T>() => T extends Flat<B> ? 1 : 2 ? true : false;

/**
 * A schema that describes exactly the type `T`, member by member, or the compiler refuses it: a type of the protocol
 * can't change without its schema.
 */
export function schemaOf<T>(): <Schema extends TSchema>(
  schema: IsSame<Static<Schema>, T> extends true ? Schema : never,
) => Schema {
  return schema => schema;
}

/** The answer of a call without an answer. */
export const nothing = () => Type.Void();

/** One of the given words. */
export const oneOf = <const T extends readonly string[]>(...values: T) =>
  Type.Unsafe<T[number]>(Type.Union(values.map(value => Type.Literal(value))));

/** A map from text to `schema`; its keys are data. */
export const mapOf = <T extends TSchema>(schema: T) =>
  Type.Unsafe<Record<string, Static<T>>>(Type.Object({}, { additionalProperties: schema }));

/** An optional member. */
export const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);

/** An ID or name. Names become parts of paths on a side that has more rights: no such text leads out of its folder. */
export const identifier = () => Type.String({ maxLength: identifierLengthMax, format: identifierFormat });
const identifierLengthMax = 128;
/** Letters, digits, `_`, `.` and `-`, the first a letter or digit. Readers of schemas know this name. */
export const identifierFormat = 'identifier';

/** A text of one line without control characters: terminals show it and files hold it unchanged. */
export const line = () => Type.String({ maxLength: lineLengthMax, format: lineFormat });
const lineLengthMax = 1_000;
/** Readers of schemas know this name, like `identifierFormat`. */
export const lineFormat = 'line';

/** The SHA-256 of something, `sha256:` and 64 hexadecimal digits. */
export const digest = () => Type.String({ maxLength: digestLength, format: digestFormat });
const digestLength = 'sha256:'.length + 64;
/** Layers, or other things that are named by their digests. */
export const digests = () => Type.Array(digest());
/** Readers of schemas know this name, like `identifierFormat`. */
export const digestFormat = 'digest';

/** A whole number from 0 on. */
export const count = () => Type.Integer({ minimum: 0 });

/** An open file in an answer. On the wire it is not a number but the file itself. */
export const descriptor = () => Type.Integer({ minimum: 0 });
