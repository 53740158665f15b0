import type { Db } from '../../database/db.ts';
import type { StreamSource } from '../record.ts';
import { eventsAfter, newestSequence } from '../store/after.ts';
import type { EventRow } from '../store/after.ts';
import { sandboxesInTransition } from '../../sandbox/store/list.ts';
import type { SandboxInTransition } from '../../sandbox/record.ts';

/** Bounds of streams of events. */
export const eventStreamBounds = {
  /** How often the database is looked at, ms. */
  pollMs: 250,
  /** Events read at a time. */
  pageMax: 100,
  /** On PostgreSQL a transaction may become visible after one with a higher sequence; so long it is looked for, ms. */
  lateMs: 5_000,
  /** Sandboxes in transition that are told of at once. */
  transitionsMax: 1_000,
} as const;

/**
 * The events of a team behind `after`, or from now on, as JSON texts. `viewOf`: also which sandboxes are between two
 * states, so told, at the beginning and each time that this has changed.
 */
export async function eventSource(
  db: Db,
  teamId: string,
  { after, viewOf }: { after: number | null; viewOf?: ((all: SandboxInTransition[]) => unknown) | undefined },
): Promise<StreamSource<string>> {
  const begin = after ?? (await newestSequence(db, teamId));
  const reader = lateReader(begin);
  let told: string | null = null;
  const standing = async () => {
    if (!viewOf) return {};
    const data = viewOf(await sandboxesInTransition(db, teamId, eventStreamBounds.transitionsMax));
    const text = JSON.stringify(data);
    if (text === told) return {};
    told = text;
    return { standing: { event: 'transitions', data } };
  };
  return {
    begin,
    async next() {
      const rows = await eventsAfter(db, teamId, reader.floor(), eventStreamBounds.pageMax);
      const fresh = reader.fresh(rows, performance.now());
      const isMore = rows.length === eventStreamBounds.pageMax;
      // A full page of what is known already must not hide what is behind it.
      if (isMore) reader.pass();
      const items = fresh.map(({ sequence, body }) => ({ place: sequence, item: body }));
      return { items, isMore, ...(await standing()) };
    },
  };
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
      const settled = seen.filter(({ seenMs }) => seenMs < nowMs - eventStreamBounds.lateMs);
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
