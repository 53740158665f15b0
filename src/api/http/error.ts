import { AtollError, type ErrorCode } from '../../base/error.ts';
import type { ApiError } from '../../protocol/api/primitives.ts';
import { toKnown } from '../../protocol/no-room.ts';

/** Messages repeat what a caller sent, which can be long. */
const messageCharactersMax = 2000;

const internalError = 'Internal error';
/** What clients are told about the store of a cluster, in place of where it is, by `error_code`. */
const aboutStore: Readonly<Record<string, string>> = {
  store_unavailable: 'The store of this cluster does not answer; try again',
  store_refused: 'The store of this cluster refuses what it is asked; the log of the platform has why',
};

/** Errors after which clients repeat by themselves. */
const repeatedByClients: ReadonlySet<ErrorCode> = new Set(['rate_limited', 'unavailable', 'deadline_exceeded']);

/** The answer to anything that was thrown. An unknown error is a bug, and the caller learns nothing about it. */
export function errorResponse(error: unknown): Response {
  const known = toKnown(error);
  if (!known) return errorBody({ code: 500, message: internalError });
  return errorBody(apiError(known), aboutRepeating(known));
}

/**
 * When to ask again, and where not to because time alone changes nothing. Python clients repeat at once what has
 * neither header: a create that has waited for most of their time would end as a timeout, with the reason lost and
 * another start begun in vain.
 */
function aboutRepeating({ code, retryAfterSeconds }: AtollError): Record<string, string> {
  if (retryAfterSeconds !== undefined) return { 'Retry-After': String(retryAfterSeconds) };
  return repeatedByClients.has(code) ? { 'Should-Retry': 'false' } : {};
}

/** An error in the form that clients get. */
export function apiError({ status, message: own, detail, forLog }: AtollError): ApiError {
  const message = forLog ? internalError : (detail !== undefined && aboutStore[detail]) || own;
  const text = message.length > messageCharactersMax ? `${message.slice(0, messageCharactersMax)}…` : message;
  return { code: status, message: text, ...(detail !== undefined && { error_code: detail }) };
}

/** The answer with an error as its body. */
export function errorBody(body: ApiError, headers: Record<string, string> = {}): Response {
  return Response.json(body, { status: body.code, headers });
}
