import { AtollError } from '../../base/error.ts';
import type { Journal } from './journal.ts';

/**
 * `GET /logs`, the platform's: see `AgentLogLine`. Ends with the sandbox, when another one asks, and with `once` after
 * the last entry.
 */
export function followLogs({ journal }: { journal: Journal }, url: URL): Response {
  const after = Number(url.searchParams.get('after') ?? 0);
  if (!Number.isSafeInteger(after) || after < 0)
    throw new AtollError('invalid', 'after must be the number of an entry');
  const lines = journal.follow(url.searchParams.get('epoch') ?? '', after, { once: url.searchParams.has('once') });
  return new Response(lines, { headers: { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' } });
}
