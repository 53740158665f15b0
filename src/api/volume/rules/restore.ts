import { microsPerSecond } from '../../../base/clock.ts';
import { AtollError } from '../../../base/error.ts';
import { isNodeLost } from '../../cluster/store/nodes.ts';
import { placeSandbox } from '../../placement/place.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { VolumeRecord } from '../record.ts';
import type { VolumeCopies } from './volume-copies.ts';
import { type NewVolumeDeps, readVolume } from './volumes.ts';

/** Dependencies of restoring a volume. */
export type RestoreDeps = Pick<NewVolumeDeps, 'clock' | 'db' | 'nodes'> & { volumeCopies: VolumeCopies | null };

/** A restored volume: what was written to it after `copiedAtUs` is lost. */
type Restored = { volume: VolumeRecord; copiedAtUs: number; ageSeconds: number };

/**
 * Restores a volume whose machine is lost from its copy in the store, on another machine. Errors: `not_found`;
 * `precondition` where there is no store or no copy; `conflict` while its machine may come back, or sandboxes have the
 * volume.
 */
export async function restoreVolume(deps: RestoreDeps, team: TeamRecord, volumeId: string): Promise<Restored> {
  const { clock, db, nodes, volumeCopies } = deps;
  const volume = await readVolume(db, team, volumeId);
  const { nodeId, name, copy } = volume;
  if (!volumeCopies?.haveStore)
    throw new AtollError('precondition', 'restoring a volume needs a cluster with a store (ATOLL_STORE)');
  if (nodes.list().some(node => node.nodeId === nodeId))
    throw new AtollError('conflict', `The machine of volume "${name}" is in reach: it has what is newer than any copy`);
  if (!(await isNodeLost(db, nodeId)))
    throw new AtollError(
      'conflict',
      `The machine of volume "${name}" may come back at any moment: it was not given up`,
      { retryAfterSeconds: 10 },
    );
  if (!copy) throw new AtollError('precondition', `The store has no copy of the volume "${name}"`);
  const { nodeId: next } = await placeSandbox(nodes, db);
  await volumeCopies.restore(volume, next);
  const ageSeconds = Math.max(0, Math.round((clock() - copy.copiedAtUs) / microsPerSecond));
  return { volume: await readVolume(db, team, volumeId), copiedAtUs: copy.copiedAtUs, ageSeconds };
}
