import { counted } from '../../../base/counted.ts';
import { AtollError, messageOf } from '../../../base/error.ts';
import { newUuid, isUuid } from '../../../base/id.ts';
import { isForgotten } from '../../placement/node-status.ts';
import { placeSandbox } from '../../placement/place.ts';
import { forgetVolumeRemoval, recordVolumeRemoval, recordVolumeRemovalHere } from '../store/removals.ts';
import { deleteVolume, findVolume, insertVolume, listVolumes, volumeRefusal, volumeUsers } from '../store/volumes.ts';
import { unlessAway } from '../../sandbox/rules/logs.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { NewVolume, VolumeRecord } from '../record.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Nodes } from '../../placement/nodes.ts';
import type { LimitsOf } from '../../team/rules/limits.ts';
import type { Db } from '../../database/db.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Features } from '../../sandbox/features.ts';

/** Dependencies of making a volume. */
export type NewVolumeDeps = { clock: Clock; db: Db; features: Features; limitsOf: LimitsOf; nodes: Nodes };

/** Dependencies of removing a volume. */
export type RemoveVolumeDeps = { clock: Clock; db: Db; log: Log; nodes: Nodes };

/** Sandboxes that the error of a refused delete names. */
const usersShownMax = 5;

/**
 * Makes a volume. Throws `invalid` (the name is taken), `forbidden` (the team may have none), `rate_limited` (it has as
 * many as allowed), `unavailable`.
 */
export async function createVolume(deps: NewVolumeDeps, team: TeamRecord, name: string): Promise<VolumeRecord> {
  const { volumes, volumeMiB } = deps.limitsOf(team);
  if (!deps.features.volumes || volumes === 0)
    throw new AtollError('forbidden', 'Volumes are not available to this team');
  refuse(await volumeRefusal(deps.db, { teamId: team.teamId, name }, volumes), name, volumes);
  const { nodeId, protocol } = await placeSandbox(deps.nodes, deps.db);
  const volume: NewVolume = {
    volumeId: newUuid(),
    teamId: team.teamId,
    nodeId,
    name,
    sizeMiB: volumeMiB,
    createdAtUs: deps.clock(),
  };
  // Every row has content. Content that gets no row, after a crash, is deleted by the reconciler: its removal is
  // recorded before it is there.
  await recordVolumeRemoval(deps.db, volume, volume.createdAtUs);
  await protocol.volumes.create(volume.volumeId, volume.sizeMiB);
  const outcome = await insertVolume(deps.db, volume, volumes);
  const made = { ...volume, movingTo: null, copy: null };
  if (outcome === 'inserted') return made;
  await protocol.volumes.remove(volume.volumeId);
  await forgetVolumeRemoval(deps.db, volume);
  return refuse(outcome, name, volumes) ?? made;
}

function refuse(refusal: 'taken' | 'full' | undefined, name: string, volumesMax: number): void {
  if (refusal === 'taken') throw new AtollError('invalid', `name: the team has a volume "${name}" already`);
  if (refusal === 'full')
    throw new AtollError(
      'rate_limited',
      `The team has ${counted(volumesMax, 'volume')}, which is its limit: delete one first`,
    );
}

/** The error for a request that needs a volume which is moving to another machine now. */
export const volumeMoves = (name: string) =>
  new AtollError('unavailable', `Volume "${name}" goes to another machine now; try again`, { retryAfterSeconds: 5 });

/** A team's volumes, the oldest first, and how many sandboxes have each. */
export async function listTeamVolumes(
  db: Db,
  { teamId }: TeamRecord,
): Promise<{ volume: VolumeRecord; sandboxCount: number }[]> {
  const [volumes, users] = await Promise.all([listVolumes(db, teamId), volumeUsers(db, teamId)]);
  return volumes.map(volume => ({ volume, sandboxCount: users.get(volume.volumeId) ?? 0 }));
}

/**
 * The room that each of a team's volumes takes, by ID. `isPartial`: a machine is away, and its volumes are left out.
 */
export async function readVolumesUse(
  { db, nodes }: { db: Db; nodes: Nodes },
  { teamId }: TeamRecord,
): Promise<{ takenBytes: Map<string, number>; isPartial: boolean }> {
  const byNode = Map.groupBy(await listVolumes(db, teamId), ({ nodeId }) => nodeId);
  const answers = await Promise.all(
    [...byNode].map(([nodeId, on]) =>
      unlessAway(nodes, async () => nodes.get(nodeId).volumes.taken(on.map(({ volumeId }) => volumeId))),
    ),
  );
  return {
    takenBytes: new Map(answers.flatMap(taken => Object.entries(taken ?? {}))),
    isPartial: answers.includes(null),
  };
}

/** Throws `invalid` for a text that is not an ID, `not_found`. */
export async function readVolume(db: Db, team: TeamRecord, volumeId: string): Promise<VolumeRecord> {
  const id = volumeId.toLowerCase();
  if (!isUuid(id)) throw new AtollError('invalid', `volumeID: "${volumeId}" is not a volume's ID`);
  const volume = await findVolume(db, id);
  if (volume?.teamId !== team.teamId) throw new AtollError('not_found', `Volume "${volumeId}" was not found`);
  return volume;
}

/**
 * Deletes a volume with its content; its tokens open nothing any more. Throws `not_found`, and `conflict` while a
 * sandbox has it.
 */
export async function removeVolume(
  { clock, db, log, nodes }: RemoveVolumeDeps,
  team: TeamRecord,
  volumeId: string,
): Promise<VolumeRecord> {
  const volume = await readVolume(db, team, volumeId);
  const outcome = await deleteVolume(db, volume, { shownMax: usersShownMax, nowUs: clock() });
  if (!outcome.deleted) {
    const { sandboxIds, more } = outcome;
    if (sandboxIds.length === 0) throw volumeMoves(volume.name);
    const users = [...sandboxIds, ...(more > 0 ? [`${more} more`] : [])].join(', ');
    throw new AtollError(
      'conflict',
      `Volume "${volume.name}" is mounted in ${users} (running or paused): kill what has it first`,
    );
  }
  if (outcome.nodeId === null) return volume;
  const place = { volumeId: volume.volumeId, nodeId: outcome.nodeId };
  // A machine that was taken out for good is not asked any more.
  if (await isForgotten({ db, nodes }, place.nodeId)) {
    await forgetVolumeRemoval(db, place);
    return volume;
  }
  // If a node does not answer, the reconciler deletes what it keeps.
  try {
    await nodes.get(place.nodeId).volumes.remove(place.volumeId);
    await forgetVolumeRemoval(db, place);
  } catch (error) {
    await recordVolumeRemovalHere(db, place, clock());
    log.warn('the content of a deleted volume is deleted later', {
      volumeId: volume.volumeId,
      error: messageOf(error),
    });
  }
  return volume;
}
