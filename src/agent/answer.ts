import { AtollError, messageOf } from '../base/error.ts';

export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json', ...headers } });
}

/** The body of every failed request that is not a call of the Connect protocol: `{code, message}` with the HTTP status. */
export function errorAnswer(error: unknown): Response {
  const status = error instanceof AtollError ? error.status : 500;
  return json({ code: status, message: messageOf(error) }, status);
}
