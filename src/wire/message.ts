import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { type Read, readerOf, Wrong } from '../protocol/wire/read.ts';
import { parseJson } from '../base/json-text.ts';

const Id = Type.Integer({ minimum: 1 });

/** From the caller: a call, or the news that nobody waits for it any more. */
const FromCaller = Type.Union([
  Type.Object({
    id: Id,
    call: Type.String({ maxLength: 100 }),
    args: Type.Array(Type.Unknown(), { maxItems: 10 }),
    trace: Type.Optional(Type.String({ maxLength: 200 })),
  }),
  Type.Object({ id: Id, cancel: Type.Literal(true) }),
]);
export type FromCaller = Static<typeof FromCaller>;

/** Steps that the call took, if its caller traces. */
const Steps = Type.Optional(
  Type.Array(
    Type.Object({
      spanId: Type.String(),
      parentSpanId: Type.String(),
      name: Type.String(),
      startMs: Type.Number(),
      endMs: Type.Number(),
      error: Type.Optional(Type.String()),
    }),
  ),
);

/** A `WireError`. */
export const WireErrorSchema = Type.Object({
  code: Type.String(),
  message: Type.String(),
  detail: Type.Optional(Type.String()),
  fields: Type.Optional(
    Type.Unsafe<Record<string, unknown>>(Type.Object({}, { additionalProperties: Type.Unknown() })),
  ),
  retryAfterSeconds: Type.Optional(Type.Number()),
  cause: Type.Optional(Type.String()),
});

/** To the caller: one answer for each call. `file`: an open file comes with it. */
const ToCaller = Type.Union([
  Type.Object({ id: Id, error: WireErrorSchema, steps: Steps }),
  Type.Object({ id: Id, result: Type.Optional(Type.Unknown()), file: Type.Optional(Type.Literal(true)), steps: Steps }),
]);
export type ToCaller = Static<typeof ToCaller>;

const fromCaller = readerOf(FromCaller);
const toCaller = readerOf(ToCaller);

/** Reads a message of a caller. Undefined: it is not valid. */
export function readFromCaller(text: string): FromCaller | undefined {
  return parse(text, fromCaller) as FromCaller | undefined;
}

/** Reads a message to a caller. Undefined: it is not valid. */
export function readToCaller(text: string): ToCaller | undefined {
  return parse(text, toCaller) as ToCaller | undefined;
}

function parse(text: string, read: Read): unknown {
  const message = read(parseJson(text));
  return message instanceof Wrong ? undefined : message;
}
