import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../../database/db.ts';
import { eventsAfter, newestSequence } from '../store/after.ts';
import type { EventRow } from '../store/after.ts';

/** Bounds of event streams. */
export const streamBounds = {
  /** How often the database is looked at, ms. */
  pollMs: 250,
  /** Without an event, a comment is sent after this time, ms, so that nobody on the way takes the stream for dead. */
  heartbeatMs: 15_000,
  /** A stream ends after this time and the client begins another. */
  secondsMax: 60,
  /** Events read at a time. */
  pageMax: 100,
  /** On PostgreSQL a transaction may become visible after one with a higher sequence; so long it is looked for, ms. */
  lateMs: 5_000,
} as const;

/**
 * The events of a team behind `after`, or from now on, in the form of server-sent events: first `ready` with the place
 * where the stream begins, then each event with its place as `id`. Ends with `signal`, after `seconds`, and when
 * `isStillLetIn` says no, which is asked before each look at the database: a revoked credential reads nothing more.
 */
export async function* streamEvents(
  db: Db,
  teamId: string,
  { after, seconds, isStillLetIn }: { after: number | null; seconds: number; isStillLetIn: () => Promise<boolean> },
  signal: AbortSignal,
): AsyncGenerator<string> {
  const endMs = performance.now() + seconds * 1000;
  const begin = after ?? (await newestSequence(db, teamId));
  const reader = lateReader(begin);
  yield `event: ready\nid: ${begin}\ndata: {"after":${begin}}\n\n`;
  let spokenMs = performance.now();
  while (!signal.aborted && performance.now() < endMs && (await isStillLetIn())) {
    const rows = await eventsAfter(db, teamId, reader.floor(), streamBounds.pageMax);
    const fresh = reader.fresh(rows, performance.now());
    for (const { sequence, body } of fresh) yield `id: ${sequence}\ndata: ${body}\n\n`;
    if (fresh.length > 0) spokenMs = performance.now();
    else if (performance.now() - spokenMs > streamBounds.heartbeatMs) {
      yield ':\n\n';
      spokenMs = performance.now();
    }
    // A full page of what is known already must not hide what is behind it.
    if (rows.length === streamBounds.pageMax) reader.pass();
    else await sleep(streamBounds.pollMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Tells new rows from those that were seen, where rows come late. */
export function lateReader(begin: number) {
  let floor = begin;
  let seen: { sequence: number; seenMs: number }[] = [];
  return {
    /** Behind this sequence everything is to be read again. */
    floor: () => floor,
    fresh(rows: readonly EventRow[], nowMs: number): EventRow[] {
      const known = new Set(seen.map(({ sequence }) => sequence));
      const fresh = rows.filter(({ sequence }) => !known.has(sequence));
      seen.push(...fresh.map(({ sequence }) => ({ sequence, seenMs: nowMs })));
      const settled = seen.filter(({ seenMs }) => seenMs < nowMs - streamBounds.lateMs);
      floor = Math.max(floor, ...settled.map(({ sequence }) => sequence));
      seen = seen.filter(({ sequence }) => sequence > floor);
      return fresh;
    },
    /** Looks at none of the seen rows again. */
    pass(): void {
      floor = Math.max(floor, ...seen.map(({ sequence }) => sequence));
      seen = [];
    },
  };
}
