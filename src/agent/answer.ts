import { AtollError, messageOf } from '../base/error.ts';

/** A response with `value` as JSON. */
export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json', ...headers } });
}

/** The answer to a failed request outside the Connect protocol: body `{code, message}`, and the HTTP status. */
export function errorAnswer(error: unknown): Response {
  const status = error instanceof AtollError ? error.status : 500;
  return json({ code: status, message: messageOf(error) }, status);
}
