import { AtollError, messageOf } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import { placeSandbox } from '../placement/place.ts';
import { forgetVolumeRemoval, noteVolumeRemoval } from '../store/orphans.ts';
import type { TeamRecord } from '../store/team.ts';
import { deleteVolume, findVolume, insertVolume, listVolumes, volumeRefusal } from '../store/volumes.ts';
import type { VolumeRecord } from '../store/volumes.ts';
import { limitsOf } from './context.ts';
import type { App } from './context.ts';
import { isUuid } from './template-reference.ts';

/** Sandboxes that a refused delete names. */
const usersShownMax = 5;

/** Throws `invalid` (the name is taken), `forbidden` (the team may have none), `rate_limited` (it has as many as allowed), `unavailable`. */
export async function createVolume(app: App, team: TeamRecord, name: string): Promise<VolumeRecord> {
  const { volumes, volumeMiB } = limitsOf(app, team);
  if (!app.features.volumes || volumes === 0) throw new AtollError('forbidden', 'Volumes are not available to this team');
  refuse(await volumeRefusal(app.store.db, { teamId: team.teamId, name }, volumes), name, volumes);
  const { nodeId, protocol } = await placeSandbox(app.nodes, app.store.db);
  const volume: VolumeRecord = { volumeId: newUuid(), teamId: team.teamId, nodeId, name, sizeMiB: volumeMiB, createdAtUs: app.clock() };
  // What has a row has content. Content that comes to no row, after a crash, the reconciler deletes: it is noted before it is there.
  await noteVolumeRemoval(app.store.db, volume, volume.createdAtUs);
  await protocol.volumes.create(volume.volumeId, volume.sizeMiB);
  const outcome = await insertVolume(app.store, volume, volumes);
  if (outcome === 'inserted') return volume;
  await protocol.volumes.remove(volume.volumeId);
  await forgetVolumeRemoval(app.store.db, volume.volumeId);
  return refuse(outcome, name, volumes) ?? volume;
}

function refuse(refusal: 'taken' | 'full' | undefined, name: string, volumesMax: number): void {
  if (refusal === 'taken') throw new AtollError('invalid', `name: the team has a volume "${name}" already`);
  if (refusal === 'full') throw new AtollError('rate_limited', `The team has ${volumesMax} volumes, which is its limit: delete one first`);
}

export async function listTeamVolumes(app: App, team: TeamRecord): Promise<VolumeRecord[]> {
  return listVolumes(app.store.db, team.teamId);
}

/** Throws `invalid` for what is no ID, `not_found`. */
export async function readVolume(app: App, team: TeamRecord, volumeId: string): Promise<VolumeRecord> {
  const id = volumeId.toLowerCase();
  if (!isUuid(id)) throw new AtollError('invalid', `volumeID: "${volumeId}" is not a volume's ID`);
  const volume = await findVolume(app.store.db, id);
  if (volume?.teamId !== team.teamId) throw new AtollError('not_found', `Volume "${volumeId}" was not found`);
  return volume;
}

/** Deletes a volume with its content; its tokens open nothing any more. Throws `not_found`, and `conflict` while a sandbox has it. */
export async function removeVolume(app: App, team: TeamRecord, volumeId: string): Promise<VolumeRecord> {
  const volume = await readVolume(app, team, volumeId);
  const outcome = await deleteVolume(app.store, volume, { shownMax: usersShownMax, nowUs: app.clock() });
  if (!outcome.deleted) {
    throw new AtollError('conflict', `Volume "${volume.name}" is mounted in ${outcome.sandboxIds.join(', ')} (running or paused): kill what has it first`);
  }
  // The reconciler deletes what a node that does not answer keeps.
  try {
    await app.nodes.get(volume.nodeId).volumes.remove(volume.volumeId);
    await forgetVolumeRemoval(app.store.db, volume.volumeId);
  } catch (error) {
    app.log.warn('the content of a deleted volume is deleted later', { volumeId: volume.volumeId, error: messageOf(error) });
  }
  return volume;
}
