import { onlyRunningHeader } from '../../protocol/agent.ts';
import { connectStatus } from '../../protocol/connect-status.ts';
import { ApiFailure, failureOf, withQuery } from './client.ts';
import type { Query } from './client.ts';
import { endFlag, joinEnvelope, readEnvelopes } from './envelope.ts';

/** How to reach a running sandbox's agent: through the edge, with routing headers on this page's own origin. */
export type Target = { sandboxId: string; token: string | null; user?: string };

/** The port of the agent in every sandbox. */
export const agentPort = 49_983;

/** Without cookies: the session must not enter a sandbox, and the edge refuses it. */
function headersOf({ sandboxId, token, user = 'user' }: Target): Record<string, string> {
  return {
    'E2b-Sandbox-Id': sandboxId,
    'E2b-Sandbox-Port': String(agentPort),
    Authorization: `Basic ${btoa(`${user}:`)}`,
    // Looking at a sandbox must not wake it, and a page hears of a pause only a moment later.
    [onlyRunningHeader]: '1',
    ...(token !== null && { 'X-Access-Token': token }),
  };
}

/** Calls a method with a single answer. Throws `ApiFailure`. */
export async function callAgent<T>(target: Target, method: string, message: unknown): Promise<T> {
  const response = await request(target, `/${method}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Connect-Protocol-Version': '1' },
    body: JSON.stringify(message),
  });
  return (await response.json()) as T;
}

/**
 * The messages of a streaming method, until it ends or `signal` aborts. Throws `ApiFailure` if it ends with an error.
 */
export async function* streamAgent<T>(
  target: Target,
  method: string,
  message: unknown,
  signal: AbortSignal,
): AsyncGenerator<T> {
  const response = await request(target, `/${method}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/connect+json', 'Connect-Protocol-Version': '1' },
    body: joinEnvelope(JSON.stringify(message)),
    signal,
  });
  for await (const { flag, json } of readEnvelopes(response.body)) {
    if (flag !== endFlag) {
      yield json as T;
      continue;
    }
    const { error } = json as { error?: { code?: string; message?: string } };
    if (error) throw streamFailure(error);
    return;
  }
  throw new ApiFailure(0, 'The connection to the sandbox was lost');
}

const statuses: ReadonlyMap<string, number> = new Map(Object.entries(connectStatus));

/** The error at the end of a stream: its code, and the status that a call with a single answer would have had. */
export function streamFailure({ code = '', message = 'The stream ended with an error' }): ApiFailure {
  return new ApiFailure(statuses.get(code) ?? connectStatus.unknown, message, code);
}

/** Reads a file of a sandbox, or writes one. Throws `ApiFailure`. */
export function agentFile(target: Target, query: Query, init: RequestInit = {}): Promise<Response> {
  return request(target, withQuery('/files', { username: target.user ?? 'user', ...query }), init);
}

async function request(target: Target, path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(path, {
    ...init,
    credentials: 'omit',
    // From a file's modification time, a browser would guess how long the file stays fresh.
    cache: 'no-store',
    headers: { ...headersOf(target), ...(init.headers as Record<string, string> | undefined) },
  }).catch((error: unknown) => {
    if (init.signal?.aborted) throw error;
    throw new ApiFailure(0, 'The sandbox does not answer');
  });
  if (!response.ok) throw await failureOf(response);
  return response;
}
