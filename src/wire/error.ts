import { AtollError, type ErrorCode, causesOf, messageOf, statusOf } from '../base/error.ts';
import { toKnown } from '../protocol/no-room.ts';

/** An error as it crosses the wire: all of an `AtollError`, with its cause as text. */
export type WireError = {
  code: string;
  message: string;
  detail?: string;
  fields?: Record<string, unknown>;
  retryAfterSeconds?: number;
  cause?: string;
};

/** The form of an error that crosses the wire. An error of any other type is a defect of the platform. */
export function toWire(error: unknown): WireError {
  const known = toKnown(error);
  if (!known)
    return { code: 'internal', message: messageOf(error), ...(error instanceof Error && { cause: causesOf(error) }) };
  const { code, message, detail, fields, retryAfterSeconds, cause } = known;
  return {
    code,
    message,
    ...(detail !== undefined && { detail }),
    ...(Object.keys(fields).length > 0 && { fields: plain(fields) }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(cause !== undefined && { cause: causesOf(cause) }),
  };
}

/**
 * The error that the other side has thrown. An unknown code, from another version, counts as `internal`. Its message
 * may name paths and processes of the other side, which are only the operator's business.
 */
export function fromWire(error: WireError): AtollError {
  const { message, detail, fields, retryAfterSeconds, cause } = error;
  const code = Object.hasOwn(statusOf, error.code) ? (error.code as ErrorCode) : 'internal';
  return new AtollError(code, message, {
    forLog: code === 'internal',
    ...(detail !== undefined && { detail }),
    ...(fields !== undefined && { fields }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(cause !== undefined && { cause: new Error(cause) }),
  });
}

/** Facts for the log may hold anything, including values that JSON has no form for. */
function plain(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, isPlain(value) ? value : String(value)]),
  );
}

const isPlain = (value: unknown) =>
  value === null ||
  ['string', 'boolean'].includes(typeof value) ||
  (typeof value === 'number' && Number.isFinite(value));
