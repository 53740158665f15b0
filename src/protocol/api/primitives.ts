import { Type } from '@sinclair/typebox';
import type { Static, TSchema } from '@sinclair/typebox';

/**
 * Building blocks of the REST API's schemas. A schema with an `$id` becomes a named component of the
 * OpenAPI document. Request schemas never allow null: null for an optional member means "not given".
 */

const int32Max = 2_147_483_647;

/** A 32-bit integer within the given bounds. */
export const int32 = (options: { minimum?: number; maximum?: number; default?: number; description?: string } = {}) =>
  Type.Integer({ minimum: -int32Max - 1, maximum: int32Max, ...options, format: 'int32' });

/** An integer of up to 53 bits: what JSON numbers carry exactly. */
export const int64 = (options: { minimum?: number; maximum?: number; default?: number; description?: string } = {}) =>
  Type.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER, ...options, format: 'int64' });

/** RFC 3339, UTC, microseconds. */
export const dateTime = (description?: string) =>
  Type.String({ format: 'date-time', ...(description === undefined ? {} : { description }) });

/** `schema` or JSON's null. */
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** One of the given words. */
export const oneOf = <const T extends readonly string[]>(values: T) =>
  Type.Unsafe<T[number]>(Type.Union(values.map(value => Type.Literal(value))));

/** A map from text to text. Its keys are data and are never dropped as unknown members. */
export const stringMap = (description?: string) =>
  Type.Unsafe<Record<string, string>>(
    Type.Object({}, { additionalProperties: Type.String(), ...(description === undefined ? {} : { description }) }),
  );

/** A map from text to `schema`. */
export const mapOf = <T extends TSchema>(schema: T, description?: string) =>
  Type.Unsafe<Record<string, Static<T>>>(
    Type.Object({}, { additionalProperties: schema, ...(description === undefined ? {} : { description }) }),
  );

/** Any JSON object. */
export const freeObject = (description?: string) =>
  Type.Unsafe<Record<string, unknown>>(
    Type.Object({}, { additionalProperties: true, ...(description === undefined ? {} : { description }) }),
  );

/** The body of every answer that is not a success. */
export const ApiError = Type.Object(
  {
    code: int32({ description: 'Always the HTTP status' }),
    message: Type.String(),
    error_code: Type.Optional(Type.String({ description: 'Machine-readable detail' })),
  },
  { $id: 'Error' },
);
export type ApiError = Static<typeof ApiError>;
