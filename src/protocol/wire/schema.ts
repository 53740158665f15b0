import { Type } from '@sinclair/typebox';
import type { Static, TSchema } from '@sinclair/typebox';

/** One object type instead of an intersection of several, all the way down: so written, equal types are the same for the compiler. */
type Flat<T> = T extends readonly (infer Item)[] ? Flat<Item>[] : T extends object ? { -readonly [Name in keyof T]: Flat<T[Name]> } : T;

type IsSame<A, B> = (<T>() => T extends Flat<A> ? 1 : 2) extends <T>() => T extends Flat<B> ? 1 : 2 ? true : false;

/**
 * A schema that describes exactly the type `T`, member by member, or the compiler refuses it: types of the protocol can't
 * change without what is checked on the wire.
 */
export function schemaOf<T>(): <Schema extends TSchema>(schema: IsSame<Static<Schema>, T> extends true ? Schema : never) => Schema {
  return schema => schema;
}

/** The answer of a call that answers nothing. */
export const nothing = () => Type.Void();

/** One of the given words. */
export const oneOf = <const T extends readonly string[]>(...values: T) => Type.Unsafe<T[number]>(Type.Union(values.map(value => Type.Literal(value))));

/** A map from text to `schema`; its keys are data. */
export const mapOf = <T extends TSchema>(schema: T) => Type.Unsafe<Record<string, Static<T>>>(Type.Object({}, { additionalProperties: schema }));

/** An optional member. */
export const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);

/**
 * What somebody or something is called by, e.g. the ID of a sandbox. Names become parts of paths on the other side, which has
 * rights that the caller has not: none leads anywhere.
 */
export const identifier = () => Type.String({ maxLength: identifierLengthMax, format: identifierFormat });
const identifierLengthMax = 128;
/** Letters, digits, `_`, `.` and `-`, the first a letter or digit: known to what reads schemas. */
export const identifierFormat = 'identifier';

/** A whole number from 0 on. */
export const count = () => Type.Integer({ minimum: 0 });

/** An open file in an answer. On the wire it is not a number but the file itself. */
export const descriptor = () => Type.Integer({ minimum: 0 });
