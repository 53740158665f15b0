import { AtollError, type ErrorCode } from '../../base/error.ts';
import type { ApiError } from '../../protocol/api/primitives.ts';
import { toKnown } from '../../protocol/no-room.ts';

/** Messages repeat what a caller sent, which can be long. */
const messageCharactersMax = 2000;

const internalError = 'Internal error';
/** What is said of the store of a cluster instead of where it is, by `error_code`. */
const aboutStore: Readonly<Record<string, string>> = {
  store_unavailable: 'The store of this cluster does not answer; try again',
  store_refused: 'The store of this cluster refuses what it is asked; the log of the platform has why',
};

/** What clients repeat of their own accord. */
const repeatedByClients: ReadonlySet<ErrorCode> = new Set(['rate_limited', 'unavailable', 'deadline_exceeded']);

/** The answer to anything that was thrown. What nobody knows is a bug: the caller learns nothing of it. */
export function errorResponse(error: unknown): Response {
  const known = toKnown(error);
  if (!known) return errorBody({ code: 500, message: internalError });
  return errorBody(apiError(known), aboutRepeating(known));
}

/**
 * When to ask again, and not to where time alone changes nothing. Clients of Python repeat what has neither at once: a
 * create that waited for most of their time would end as a timeout, its reason lost and another start begun in vain.
 */
function aboutRepeating({ code, retryAfterSeconds }: AtollError): Record<string, string> {
  if (retryAfterSeconds !== undefined) return { 'Retry-After': String(retryAfterSeconds) };
  return repeatedByClients.has(code) ? { 'Should-Retry': 'false' } : {};
}

/** An error as clients are told of it. */
export function apiError({ status, message: own, detail, forLog }: AtollError): ApiError {
  const message = forLog ? internalError : (detail !== undefined && aboutStore[detail]) || own;
  const text = message.length > messageCharactersMax ? `${message.slice(0, messageCharactersMax)}…` : message;
  return { code: status, message: text, ...(detail !== undefined && { error_code: detail }) };
}

/** The answer with an error as its body. */
export function errorBody(body: ApiError, headers: Record<string, string> = {}): Response {
  return Response.json(body, { status: body.code, headers });
}
