import { counted } from '../../../base/counted.ts';
import { forEachParallel } from '../../../base/concurrency/parallel.ts';
import { AtollError } from '../../../base/error.ts';
import { agentVersion } from '../../../protocol/agent.ts';
import { defaultTimeoutSeconds } from '../../../protocol/api/sandbox.ts';
import type { NodeProtocol, SetAsideSandbox } from '../../../protocol/node.ts';
import { settleInstallation } from '../../database/installation.ts';
import { putPausedSandbox } from '../../sandbox/store/adopt.ts';
import { forgetVolumeRemoval, volumeRemovalsOn } from '../../volume/store/removals.ts';
import { findSandboxOfAnyTeam } from '../../sandbox/store/read.ts';
import { findVolume, insertVolume, volumesOnNode } from '../../volume/store/volumes.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import { defaultOptions, type SandboxRecord } from '../../sandbox/record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { LimitsOf } from '../../team/rules/limits.ts';
import type { Db } from '../../database/db.ts';
import type { SandboxDirectory } from '../../sandbox/directory/directory.ts';
import type { Clock } from '../../../base/clock.ts';
import { isGone } from '../../placement/node-status.ts';
import { isCluster, type Nodes } from '../../placement/nodes.ts';
import type { NodeVolume } from '../../../protocol/volume.ts';

/** Dependencies of looking for what the store does not know. */
export type OrphanDeps = { clock: Clock; db: Db; nodes: Nodes };

/** Dependencies of giving a team a sandbox that was set aside. */
export type AdoptDeps = OrphanDeps & { directory: SandboxDirectory };

/** Dependencies of giving a team an unknown volume. */
export type AdoptVolumeDeps = OrphanDeps & { limitsOf: LimitsOf };

/** A volume younger than this may be one whose row is about to be written. */
const youngSeconds = 10 * 60;

/** A volume that the database does not know. */
type OrphanVolume = NodeVolume & { nodeId: string };
/** Sandboxes and volumes that the database does not know. */
type Orphans = { sandboxes: (SetAsideSandbox & { nodeId: string })[]; volumes: OrphanVolume[] };

/** Machines asked at a time: each takes a connection to the database. */
const nodesAtOnce = 32;

/**
 * What nodes keep that the store does not know: it stays until an operator adopts or removes it. `unanswered`: the
 * nodes that may keep more.
 */
export async function listOrphans(deps: OrphanDeps): Promise<Orphans & { unanswered: string[] }> {
  const listed = deps.nodes.list();
  const found = new Map<string, Orphans>();
  await forEachParallel(listed, nodesAtOnce, async ({ nodeId, protocol }) => {
    const kept = await keptOn(protocol).catch(() => null);
    if (!kept) return;
    const sandboxes = kept.setAside.map(sandbox => ({ ...sandbox, nodeId }));
    found.set(nodeId, { sandboxes, volumes: await unknownOf(deps, nodeId, kept.volumes) });
  });
  const inOrder = listed.flatMap(({ nodeId }) => found.get(nodeId) ?? []);
  const silent = [...listed.filter(({ nodeId }) => !found.has(nodeId)), ...(deps.nodes.away?.() ?? [])];
  return {
    sandboxes: inOrder.flatMap(({ sandboxes }) => sandboxes),
    volumes: inOrder.flatMap(({ volumes }) => volumes),
    unanswered: silent.map(({ nodeId }) => nodeId).toSorted(),
  };
}

async function keptOn(protocol: NodeProtocol): Promise<{ setAside: SetAsideSandbox[]; volumes: NodeVolume[] }> {
  return { setAside: await protocol.listSetAside(), volumes: await protocol.volumes.list() };
}

/** Rows are read after the machine's list, so that a row written meanwhile is found. */
async function unknownOf({ clock, db }: OrphanDeps, nodeId: string, present: NodeVolume[]): Promise<OrphanVolume[]> {
  const [known, removals] = await Promise.all([volumesOnNode(db, nodeId), volumeRemovalsOn(db, nodeId)]);
  const accounted = new Set([...known, ...removals.map(({ volumeId }) => volumeId)]);
  const oldestMs = (clock() - youngSeconds * microsPerSecond) / 1000;
  return present
    .filter(({ volumeId, createdAtMs }) => !accounted.has(volumeId) && createdAtMs < oldestMs)
    .map(volume => ({ ...volume, nodeId }));
}

/**
 * Gives a team a sandbox that was set aside, as a paused one. What only the store knew of it (metadata, variables,
 * name) is lost; its token stays the same. Throws `not_found`, and `conflict` where it can't be taken.
 */
export async function adoptSandbox(deps: AdoptDeps, team: TeamRecord, sandboxId: string): Promise<SandboxRecord> {
  const { known, nodeId, reason } = await orphanSandbox(deps, sandboxId);
  if (!known)
    throw new AtollError(
      'conflict',
      `Sandbox "${sandboxId}" can't be taken: ${reason}. Its files are in node/sandboxes/${sandboxId} of the data ` +
        'directory',
    );
  const row = await findSandboxOfAnyTeam(deps.db, sandboxId);
  if (row && row.teamId !== team.teamId)
    throw new AtollError('conflict', `Sandbox "${sandboxId}" is another team's: adopt it for team ${row.teamId}`);
  if (row && (await isThere(deps, row))) throw isElsewhere(sandboxId);
  const target = { sandboxId, executionId: known.executionId };
  const volumeMounts = [];
  for (const { volumeId, path } of known.volumes) {
    const volume = await findVolume(deps.db, volumeId);
    if (volume?.teamId !== team.teamId)
      throw new AtollError(
        'conflict',
        `Sandbox "${sandboxId}" has the volume ${volumeId} mounted, which the team does not have: adopt that first`,
      );
    volumeMounts.push({ volumeId, name: volume.name, path });
  }
  const nowUs = deps.clock();
  const startedAtUs = Math.min(nowUs, Math.round(known.startedAtMs * 1000));
  const { cpuCount, memoryMiB, diskMiB } = known.resources;
  const node = deps.nodes.get(nodeId);
  // The node first: after a crash in between, the store does not know the sandbox, and it is set aside again.
  await node.takeBack(target);
  const paused: Parameters<typeof putPausedSandbox>[1] = {
    ...defaultOptions,
    ...target,
    teamId: team.teamId,
    nodeId,
    state: 'paused',
    templateId: known.image.templateId,
    buildId: known.image.buildId,
    alias: null,
    agentVersion,
    cpuCount,
    memoryMiB,
    diskMiB,
    createdAtUs: startedAtUs,
    startedAtUs,
    endAtUs: nowUs,
    timeoutSeconds: defaultTimeoutSeconds.v2,
    secure: true,
    volumeMounts,
    kept: known.kept,
    // Its node reports this with the next list of paused sandboxes.
    agentUnresponsive: false,
    durability: null,
    nextExecutionId: null,
    nextNodeId: null,
    replicaId: null,
  };
  const taken = await putPausedSandbox(deps.db, paused, row);
  if (!taken) {
    await node.setAside(target, reason);
    throw isElsewhere(sandboxId);
  }
  deps.directory.adopt(taken);
  return taken;
}

/**
 * Whether the sandbox of a row is on a machine, or in the store: then the orphan is the rest of an earlier execution.
 * What is in the store goes with the row that refers to it.
 */
async function isThere({ db, nodes }: OrphanDeps, row: SandboxRecord): Promise<boolean> {
  if (row.state === 'paused' && row.durability === 'cluster') return true;
  const executions = new Set([row.executionId, row.nextExecutionId]);
  for (const nodeId of new Set([row.nodeId, row.nextNodeId])) {
    const isKnown = nodes.list().some(node => node.nodeId === nodeId);
    if (nodeId === null || (!isKnown && (!isCluster(nodes) || (await isGone(db, nodeId))))) continue;
    const node = nodes.get(nodeId);
    // In this order: a sandbox that is paused after the first list was read is in the second one.
    const there = [await node.list(), await node.listPaused()].flat();
    if (there.some(({ executionId }) => executions.has(executionId))) return true;
  }
  return false;
}

const isElsewhere = (sandboxId: string) =>
  new AtollError(
    'conflict',
    `Sandbox "${sandboxId}" runs, is paused, or is changed right now: what was set aside is of another time. Discard ` +
      'it, or kill the sandbox first',
  );

/** Removes a sandbox that was set aside, with everything that it has kept. Throws `not_found`. */
export async function discardSandbox(deps: OrphanDeps, sandboxId: string): Promise<void> {
  const { nodeId } = await orphanSandbox(deps, sandboxId);
  await deps.nodes.get(nodeId).removeSetAside(sandboxId);
}

async function orphanSandbox(deps: OrphanDeps, sandboxId: string): Promise<Orphans['sandboxes'][number]> {
  const { sandboxes, unanswered } = await listOrphans(deps);
  const found = sandboxes.find(orphan => orphan.sandboxId === sandboxId);
  if (found) return found;
  requireAnswers(unanswered);
  throw new AtollError(
    'not_found',
    `Sandbox "${sandboxId}" is not set aside; \`atoll sandbox orphans\` lists those that are`,
  );
}

/** Throws `unavailable` where what was not found may be on a machine that did not answer. */
function requireAnswers(unanswered: readonly string[]): void {
  if (unanswered.length > 0)
    throw new AtollError('unavailable', `It may be on a node that does not answer: ${unanswered.join(', ')}`);
}

/**
 * Gives a team a volume that the store does not know. Throws `not_found`, `conflict` (the name is taken),
 * `rate_limited`.
 */
export async function adoptVolume(
  deps: AdoptVolumeDeps,
  team: TeamRecord,
  volumeId: string,
  name: string,
): Promise<void> {
  const { nodeId, createdAtMs, sizeMiB } = await orphanVolume(deps, volumeId);
  const { volumes, volumeMiB } = deps.limitsOf(team);
  const outcome = await insertVolume(
    deps.db,
    {
      ...{ volumeId, teamId: team.teamId, nodeId, name },
      sizeMiB: sizeMiB ?? volumeMiB,
      createdAtUs: Math.round(createdAtMs * 1000),
    },
    volumes,
  );
  if (outcome === 'taken') throw new AtollError('conflict', `name: the team has a volume "${name}" already`);
  if (outcome === 'full')
    throw new AtollError(
      'rate_limited',
      `The team has ${counted(volumes, 'volume')}, which is its limit: delete one first`,
    );
}

/**
 * Removes a volume that the store does not know, with its content. Throws `not_found`, `conflict` while a sandbox has
 * it.
 */
export async function discardVolume(deps: OrphanDeps, volumeId: string): Promise<void> {
  const { nodeId } = await orphanVolume(deps, volumeId);
  await deps.nodes.get(nodeId).volumes.remove(volumeId);
  await forgetVolumeRemoval(deps.db, { volumeId, nodeId });
}

async function orphanVolume(deps: OrphanDeps, volumeId: string): Promise<OrphanVolume> {
  const { volumes, unanswered } = await listOrphans(deps);
  const found = volumes.find(orphan => orphan.volumeId === volumeId);
  if (found) return found;
  requireAnswers(unanswered);
  throw new AtollError(
    'not_found',
    `Volume "${volumeId}" is not one that the store does not know; \`atoll sandbox orphans\` lists those`,
  );
}

/** Allows deleting unneeded layers and memory again, after an operator accepted a database that did not know them. */
export async function forgetUnknown(db: Db): Promise<void> {
  await settleInstallation(db);
}
