import { AtollError } from '../../../base/error.ts';
import type { ReadSandboxLogs, SandboxLogEntry } from '../../../protocol/logs.ts';
import type { News, StreamSource } from '../../event/record.ts';
import type { TeamRecord } from '../../team/record.ts';
import { findSandbox } from '../store/read.ts';
import { parseSandboxId } from './find.ts';
import { type LogDeps, readSandboxLogs } from './logs.ts';

/** Bounds of streams of logs. */
export const logStreamBounds = {
  /** Interval at which a sandbox's node is asked, ms. */
  pollMs: 500,
  /** Entries read at a time. */
  pageMax: 200,
} as const;

const page = { backward: false, limit: logStreamBounds.pageMax } as const;

/** Where a stream of logs begins, and which entries it contains. */
type LogStreamQuery = Pick<ReadSandboxLogs, 'minimum' | 'logger' | 'search'> & {
  /** Begin after this entry; null: `tail` entries before the newest one. */
  after: number | null;
  tail: number;
};

/**
 * The growing log of the team's sandbox; it ends with the sandbox. Throws `not_found`, `invalid` for a text that is not
 * an ID.
 */
export async function logSource(
  deps: LogDeps,
  team: TeamRecord,
  idText: string,
  { after, tail, ...filter }: LogStreamQuery,
): Promise<StreamSource<SandboxLogEntry>> {
  const read = (page: Pick<ReadSandboxLogs, 'backward' | 'limit' | 'fromMs'>) =>
    readSandboxLogs(deps, team, idText, { ...filter, ...page });
  const sandboxId = parseSandboxId(idText);
  const begin = after ?? beginOf((await read({ backward: true, limit: Math.max(1, tail) })).entries, tail);
  let place = begin;
  const next = async (): Promise<News<SandboxLogEntry>> => {
    // Checked before the log is read: the log of an ended sandbox is complete.
    const isOver = (await findSandbox(deps.db, team.teamId, sandboxId)) === null;
    const behind = { fromMs: place + 1 };
    // What was searched once and does not match is not searched again: that may be all of the log.
    const newest = await readSandboxLogs(deps, team, idText, { ...behind, backward: true, limit: 1 });
    const { entries, isPartial } = newest.entries.length === 0 ? newest : await read({ ...behind, ...page });
    // Entries on the machine that is away may belong before these.
    if (newest.isPartial || isPartial) return { items: [], isMore: false };
    const isMore = entries.length === logStreamBounds.pageMax;
    const searched = isMore ? place : (newest.entries[0]?.timestampMs ?? place);
    place = Math.max(searched, entries.at(-1)?.timestampMs ?? place);
    const items = entries.map(entry => ({ place: entry.timestampMs, item: entry }));
    return { items, isMore, ...(isOver && !isMore && { end: {} }) };
  };
  // A machine that does not answer now is asked again: the stream goes on when it does.
  return { begin, next: () => next().catch(unlessAway) };
}

/** The place before the last `tail` entries; `newest` has the newest first. */
function beginOf(newest: readonly SandboxLogEntry[], tail: number): number {
  const [last] = newest;
  const oldest = newest.at(-1);
  if (!last || !oldest) return 0;
  return tail === 0 ? last.timestampMs : oldest.timestampMs - 1;
}

function unlessAway(error: unknown): News<SandboxLogEntry> {
  if (error instanceof AtollError && error.code === 'unavailable') return { items: [], isMore: false };
  throw error;
}
