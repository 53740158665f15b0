import { AtollError } from '../../../base/error.ts';
import type { SandboxSample, TrafficCounters } from '../../../protocol/node-usage.ts';
import { homesOf, placesOf } from '../../sandbox/store/past.ts';
import { unlessAway } from '../../sandbox/rules/logs.ts';
import { parseSandboxId, sandboxFor, sandboxNotFound } from '../../sandbox/rules/find.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';
import type { Nodes } from '../../placement/nodes.ts';

/** Samples in one answer: a longer range is merged, while an hour's samples come unchanged. */
const samplesMax = 1_000;
/** Sandboxes that one request may ask for. */
export const batchMax = 100;

/** A range of time, Unix seconds, both ends included. */
export type TimeRange = { start?: number; end?: number };

/** Throws `invalid` for a range that ends before it begins. Epoch seconds. */
export function checkRange({ start, end }: TimeRange): void {
  if (start !== undefined && end !== undefined && start > end)
    throw new AtollError('invalid', `start: must not be after end (${start} > ${end})`);
}

/**
 * Use of a team's sandbox, oldest first, within a range or as far as it is kept; also of a past one, for a while, on
 * every machine that it was on. Empty for any other. `isPartial`: one of these machines is away. Throws `invalid`.
 */
export async function readSamples(
  { db, nodes }: { db: Db; nodes: Nodes },
  team: TeamRecord,
  idText: string,
  range: TimeRange,
): Promise<{ samples: SandboxSample[]; isPartial: boolean }> {
  checkRange(range);
  const sandboxId = parseSandboxId(idText);
  const [place] = await placesOf(db, team.teamId, [sandboxId]);
  if (!place) return { samples: [], isPartial: false };
  const { start = 0, end = Number.MAX_SAFE_INTEGER } = range;
  const asked = { startSeconds: start, endSeconds: end, pointsMax: samplesMax };
  const homes = nodes.away ? await homesOf(db, sandboxId) : [];
  const found = await Promise.all(
    [...new Set([place.nodeId, ...homes])].map(nodeId =>
      unlessAway(nodes, async () => nodes.get(nodeId).samples(sandboxId, asked)),
    ),
  );
  const samples = found.flatMap(samples => samples ?? []).toSorted((a, b) => a.atSeconds - b.atSeconds);
  return { samples, isPartial: found.includes(null) };
}

/**
 * The latest sample of each of a team's sandboxes, by the ID in the request. Left out are other teams' sandboxes, and
 * those on a machine that is away. Throws `invalid`.
 */
export async function readLatestSamples(
  { db, nodes }: { db: Db; nodes: Nodes },
  team: TeamRecord,
  idTexts: readonly string[],
): Promise<{ samples: Record<string, SandboxSample>; isPartial: boolean }> {
  const asked = idTexts.map(text => ({ text, sandboxId: parseSandboxId(text) }));
  if (new Set(asked.map(({ sandboxId }) => sandboxId)).size < asked.length)
    throw new AtollError('invalid', 'sandbox_ids: must be unique');
  const places = await placesOf(
    db,
    team.teamId,
    asked.map(({ sandboxId }) => sandboxId),
  );
  const byNode = Map.groupBy(places, ({ nodeId }) => nodeId);
  const answers = await Promise.all(
    [...byNode].map(([nodeId, on]) =>
      unlessAway(nodes, async () => nodes.get(nodeId).latestSamples(on.map(({ sandboxId }) => sandboxId))),
    ),
  );
  const latest = new Map(answers.flatMap(answer => Object.entries(answer ?? {})));
  const samples = Object.fromEntries(
    asked.flatMap(({ text, sandboxId }) =>
      latest.has(sandboxId) ? [[text, latest.get(sandboxId) as SandboxSample]] : [],
    ),
  );
  return { samples, isPartial: answers.includes(null) };
}

/**
 * What a team's running sandbox itself has sent and received since it was created or resumed, and what was refused.
 * Throws `not_found`, and `conflict` for one that does not run.
 */
export async function readTraffic(
  { db, nodes }: { db: Db; nodes: Nodes },
  team: TeamRecord,
  idText: string,
): Promise<TrafficCounters> {
  const sandbox = await sandboxFor(db, team, idText, 'read');
  if (sandbox.state !== 'running' && sandbox.state !== 'snapshotting') {
    throw new AtollError('conflict', `Sandbox "${sandbox.sandboxId}" is paused: it sends and receives nothing`);
  }
  return nodes
    .get(sandbox.nodeId)
    .traffic(sandbox)
    .catch((error: unknown) => {
      throw error instanceof AtollError && error.code === 'not_found' ? sandboxNotFound(sandbox.sandboxId) : error;
    });
}
