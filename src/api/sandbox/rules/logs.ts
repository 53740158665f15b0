import { AtollError } from '../../../base/error.ts';
import type { ReadSandboxLogs, SandboxLogEntry } from '../../../protocol/logs.ts';
import type { StoredLogs } from '../../blob/rules/logs.ts';
import { homesOf, placesOf } from '../store/past.ts';
import { parseSandboxId, sandboxNotFound } from './find.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';
import type { Nodes } from '../../placement/nodes.ts';

/** What it takes to read logs. */
export type LogDeps = {
  db: Db;
  nodes: Nodes;
  /** Null: logs are on machines alone. */
  storedLogs: Pick<StoredLogs, 'read'> | null;
};

/** A page of a log. */
type LogPage = {
  entries: SandboxLogEntry[];
  /** A machine that has a part of it is away: there may be more. */
  isPartial: boolean;
};

/**
 * What happened in the team's sandbox, even after its end, on every machine that it was on. Throws `not_found`,
 * `invalid` for a text that is not an ID.
 */
export async function readSandboxLogs(
  { db, nodes, storedLogs }: LogDeps,
  team: TeamRecord,
  idText: string,
  page: Omit<ReadSandboxLogs, 'sandboxId'>,
): Promise<LogPage> {
  const sandboxId = parseSandboxId(idText);
  const [place] = await placesOf(db, team.teamId, [sandboxId]);
  if (!place) throw sandboxNotFound(sandboxId);
  const homes = nodes.away ? await homesOf(db, sandboxId) : [];
  const request = { sandboxId, ...page };
  const found = await Promise.all(
    [...new Set([place.nodeId, ...homes])].map(nodeId =>
      unlessAway(nodes, async () => nodes.get(nodeId).logs(request)),
    ),
  );
  if (!found.includes(null)) return { entries: merged(found, page), isPartial: false };
  const stored = await storedLogs?.read(request);
  if (stored) return { entries: stored, isPartial: false };
  return { entries: merged(found, page), isPartial: true };
}

/** What a machine answers; null for a machine of a cluster that is away. */
export async function unlessAway<T>(nodes: Nodes, ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (nodes.away && error instanceof AtollError && error.code === 'unavailable') return null;
    throw error;
  }
}

function merged(
  found: readonly (SandboxLogEntry[] | null)[],
  { backward, limit }: Pick<ReadSandboxLogs, 'backward' | 'limit'>,
): SandboxLogEntry[] {
  const [only] = found;
  if (found.length === 1) return only ?? [];
  const order = backward ? -1 : 1;
  return found
    .flatMap(entries => entries ?? [])
    .toSorted((a, b) => order * (a.timestampMs - b.timestampMs))
    .slice(0, limit);
}
