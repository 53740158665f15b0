import { AtollError } from '../../base/error.ts';
import { agentVersion } from '../../protocol/agent.ts';
import { defaultTimeoutSeconds } from '../../protocol/api/sandbox.ts';
import type { SetAsideSandbox } from '../../protocol/node.ts';
import { settleInstallation } from '../store/installation.ts';
import { forgetVolumeRemoval, putPausedSandbox, volumeRemovalsOn } from '../store/orphans.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import { findSandboxOfAnyTeam } from '../store/sandbox-read.ts';
import type { TeamRecord } from '../store/team.ts';
import { findVolume, insertVolume, volumesOnNode } from '../store/volumes.ts';
import { microsPerSecond } from './clock.ts';
import { limitsOf } from './context.ts';
import type { App } from './context.ts';

/** A volume younger than this may be one whose row is about to be written. */
const youngSeconds = 10 * 60;

export type OrphanVolume = { volumeId: string; nodeId: string; createdAtMs: number };
export type Orphans = { sandboxes: (SetAsideSandbox & { nodeId: string })[]; volumes: OrphanVolume[] };

/** What nodes keep that the store does not know: it stays until an operator takes or removes it. */
export async function listOrphans(app: App): Promise<Orphans> {
  const orphans: Orphans = { sandboxes: [], volumes: [] };
  for (const { nodeId, protocol } of app.nodes.list()) {
    for (const sandbox of await protocol.listSetAside()) orphans.sandboxes.push({ ...sandbox, nodeId });
    const present = await protocol.volumes.list();
    const [known, removals] = await Promise.all([volumesOnNode(app.store.db, nodeId), volumeRemovalsOn(app.store.db, nodeId)]);
    const accounted = new Set([...known, ...removals.map(({ volumeId }) => volumeId)]);
    const oldestMs = (app.clock() - youngSeconds * microsPerSecond) / 1000;
    for (const volume of present) if (!accounted.has(volume.volumeId) && volume.createdAtMs < oldestMs) orphans.volumes.push({ ...volume, nodeId });
  }
  return orphans;
}

/**
 * Gives a sandbox that was set aside to a team, as a paused one. What only the store knew of it (metadata, variables, name)
 * is not there any more; its token is the one that it had. Throws `not_found`, and `conflict` where it can't be taken.
 */
export async function adoptSandbox(app: App, team: TeamRecord, sandboxId: string): Promise<SandboxRecord> {
  const { known, nodeId, reason } = await orphanSandbox(app, sandboxId);
  if (!known) throw new AtollError('conflict', `Sandbox "${sandboxId}" can't be taken: ${reason}. Its files are in node/sandboxes/${sandboxId} of the data directory`);
  const row = await findSandboxOfAnyTeam(app.store.db, sandboxId);
  if (row && row.teamId !== team.teamId) throw new AtollError('conflict', `Sandbox "${sandboxId}" is another team's: adopt it for team ${row.teamId}`);
  const target = { sandboxId, executionId: known.executionId };
  const volumeMounts = [];
  for (const { volumeId, path } of known.volumes) {
    const volume = await findVolume(app.store.db, volumeId);
    if (volume?.teamId !== team.teamId) throw new AtollError('conflict', `Sandbox "${sandboxId}" has the volume ${volumeId} mounted, which the team does not have: adopt that first`);
    volumeMounts.push({ volumeId, name: volume.name, path });
  }
  const nowUs = app.clock();
  const startedAtUs = Math.min(nowUs, Math.round(known.startedAtMs * 1000));
  const { cpuCount, memoryMiB, diskMiB } = known.resources;
  // The node first: a crash in between leaves it unknown to the store, and it is set aside again.
  await app.nodes.get(nodeId).takeBack(target);
  const taken = await putPausedSandbox(app.store.db, {
    ...{ ...target, teamId: team.teamId, nodeId, state: 'paused', templateId: known.image.templateId, buildId: known.image.buildId, alias: null },
    ...{ agentVersion, cpuCount, memoryMiB, diskMiB, createdAtUs: startedAtUs, startedAtUs, endAtUs: nowUs, timeoutSeconds: defaultTimeoutSeconds.v2 },
    ...{ secure: true, autoPause: false, autoPauseMemory: true, autoResume: false, allowInternetAccess: null, network: null, metadata: null, envVars: {} },
    ...{ mcp: null, iam: null, volumeMounts, kept: known.kept, nextExecutionId: null },
  });
  app.directory.adopt(taken);
  return taken;
}

/** Removes a sandbox that was set aside, with all that it has kept. Throws `not_found`. */
export async function discardSandbox(app: App, sandboxId: string): Promise<void> {
  const { nodeId } = await orphanSandbox(app, sandboxId);
  await app.nodes.get(nodeId).removeSetAside(sandboxId);
}

async function orphanSandbox(app: App, sandboxId: string): Promise<Orphans['sandboxes'][number]> {
  const found = (await listOrphans(app)).sandboxes.find(orphan => orphan.sandboxId === sandboxId);
  if (!found) throw new AtollError('not_found', `Sandbox "${sandboxId}" is not set aside; \`atoll sandbox orphans\` lists those that are`);
  return found;
}

/** Gives a volume that the store does not know to a team. Throws `not_found`, `invalid` (the name is taken), `rate_limited`. */
export async function adoptVolume(app: App, team: TeamRecord, volumeId: string, name: string): Promise<void> {
  const { nodeId, createdAtMs } = await orphanVolume(app, volumeId);
  const { volumes, volumeMiB } = limitsOf(app, team);
  const outcome = await insertVolume(app.store, { volumeId, teamId: team.teamId, nodeId, name, sizeMiB: volumeMiB, createdAtUs: Math.round(createdAtMs * 1000) }, volumes);
  if (outcome === 'taken') throw new AtollError('invalid', `name: the team has a volume "${name}" already`);
  if (outcome === 'full') throw new AtollError('rate_limited', `The team has ${volumes} volumes, which is its limit: delete one first`);
}

/** Removes a volume that the store does not know, with its content. Throws `not_found`, `conflict` while a sandbox has it. */
export async function discardVolume(app: App, volumeId: string): Promise<void> {
  const { nodeId } = await orphanVolume(app, volumeId);
  await app.nodes.get(nodeId).volumes.remove(volumeId);
  await forgetVolumeRemoval(app.store.db, volumeId);
}

async function orphanVolume(app: App, volumeId: string): Promise<OrphanVolume> {
  const found = (await listOrphans(app)).volumes.find(orphan => orphan.volumeId === volumeId);
  if (!found) throw new AtollError('not_found', `Volume "${volumeId}" is not one that the store does not know; \`atoll sandbox orphans\` lists those`);
  return found;
}

/** Layers and memory that nothing needs may be deleted again, after a database was taken that did not know them. */
export async function forgetUnknown(app: App): Promise<void> {
  await settleInstallation(app.store.db);
}
