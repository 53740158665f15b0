import { kindOf } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import type { StreamSource } from '../record.ts';
import { eventsAfter, eventsAt, longBefore, newestSequence, sequencesBetween } from '../store/after.ts';
import type { EventRow } from '../store/after.ts';
import { sandboxesInTransition } from '../../sandbox/store/list/list.ts';
import type { SandboxInTransition } from '../../sandbox/record.ts';

/** Bounds of streams of events. */
export const eventStreamBounds = {
  /** How often it checks the database, ms. */
  pollMs: 250,
  /** Events read at a time. */
  pageMax: 100,
  /**
   * On PostgreSQL a transaction may become visible after one with a higher sequence; late ones are looked for during
   * this time, ms.
   */
  lateMs: 5_000,
  /** How often late ones are looked for, ms. */
  lookBackMs: 1_000,
  /** Sandboxes in transition that are reported at once. */
  transitionsMax: 1_000,
} as const;

/**
 * The events of a team after `after`, or from now on, as JSON texts. On PostgreSQL those right before `after` are sent
 * again, because one may have become visible only since. `viewOf`: also reports, in this form, which sandboxes are
 * between two states, at the beginning and whenever that has changed.
 */
export async function eventSource(
  db: Db,
  teamId: string,
  { after, viewOf }: { after: number | null; viewOf?: ((all: SandboxInTransition[]) => unknown) | undefined },
): Promise<StreamSource<string>> {
  const begin = after ?? (await newestSequence(db, teamId));
  const reader = await readerFrom(db, teamId, begin, after !== null);
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
      const { pageMax } = eventStreamBounds;
      const behind = reader.position();
      const late = await lateEvents(db, teamId, reader);
      const rows = await eventsAfter(db, teamId, behind, pageMax);
      reader.read(
        rows.map(({ sequence }) => sequence),
        performance.now(),
      );
      // A reader that continued from a late event's own place would get everything after it again.
      const items = [
        ...late.map(({ body }) => ({ place: behind, item: body })),
        ...rows.map(({ sequence, body }) => ({ place: sequence, item: body })),
      ];
      return { items, isMore: late.length === pageMax || rows.length === pageMax, ...(await standing()) };
    },
  };
}

async function readerFrom(db: Db, teamId: string, begin: number, tellsAgain: boolean): Promise<LateReader> {
  if (kindOf(db) === 'sqlite') return lateReader(begin, begin, performance.now());
  const floor = await longBefore(db, teamId, begin, eventStreamBounds.lateMs * 1000);
  const reader = lateReader(begin, floor, performance.now());
  // A new reader gets what becomes visible from now on, late events included, and nothing that is there already.
  if (!tellsAgain) reader.read(await sequencesBetween(db, teamId, floor, begin), performance.now());
  return reader;
}

/** Events that became visible after one with a higher sequence was sent. */
async function lateEvents(db: Db, teamId: string, reader: LateReader): Promise<EventRow[]> {
  const floor = reader.floorToLookFrom(performance.now());
  // On SQLite, a transaction is over before the next one gets a sequence.
  if (floor === null || kindOf(db) === 'sqlite') return [];
  const unread = reader.unread(await sequencesBetween(db, teamId, floor, reader.position()));
  const late = unread.slice(0, eventStreamBounds.pageMax);
  if (late.length === 0) return [];
  reader.read(late, performance.now());
  if (unread.length > late.length) reader.lookAgain();
  return eventsAt(db, teamId, late);
}

type LateReader = ReturnType<typeof lateReader>;

/**
 * Remembers what was read of rows that may come late: everything visible was read up to `position`, and there may be
 * more after `floor`.
 */
export function lateReader(begin: number, from: number, nowMs: number) {
  const { lateMs, lookBackMs } = eventStreamBounds;
  let position = begin;
  let floor = from;
  let lookedMs = -Infinity;
  const readMs = new Map<number, number>(from < begin ? [[begin, nowMs]] : []);
  const settle = (nowMs: number) => {
    for (const [sequence, atMs] of readMs) if (atMs < nowMs - lateMs) floor = Math.max(floor, sequence);
    for (const sequence of readMs.keys()) if (sequence <= floor) readMs.delete(sequence);
  };
  return {
    position: () => position,
    /** The sequence after which to look for late rows; null where there is nothing to look for, or not yet again. */
    floorToLookFrom(nowMs: number): number | null {
      settle(nowMs);
      if (floor >= position || nowMs < lookedMs + lookBackMs) return null;
      lookedMs = nowMs;
      return floor;
    },
    /** Makes the next look happen at once. */
    lookAgain: () => void (lookedMs = -Infinity),
    unread: (sequences: readonly number[]): number[] => sequences.filter(sequence => !readMs.has(sequence)),
    read(sequences: readonly number[], nowMs: number): void {
      for (const sequence of sequences) {
        readMs.set(sequence, nowMs);
        position = Math.max(position, sequence);
      }
    },
  };
}
