import { AtollError } from '../../base/error.ts';
import type { Journal } from './journal.ts';

/**
 * `GET /logs`, for the platform: see `AgentLogLine`. Ends with the sandbox or when another follower comes; with `once`,
 * after the last entry.
 */
export function followLogs({ journal }: { journal: Journal }, url: URL): Response {
  const after = Number(url.searchParams.get('after') ?? 0);
  if (!Number.isSafeInteger(after) || after < 0)
    throw new AtollError('invalid', 'after must be the number of an entry');
  const epoch = url.searchParams.get('epoch') ?? '';
  const lines = url.searchParams.has('once') ? journal.since(epoch, after) : journal.follow(epoch, after);
  return new Response(lines, { headers: { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' } });
}
