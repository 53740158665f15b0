import { createSemaphore } from '../../../base/concurrency/semaphore.ts';
import { AtollError, messageOf } from '../../../base/error.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import type { Db } from '../../database/db.ts';
import { nodesToEmpty } from '../../placement/node-status.ts';
import type { Nodes } from '../../placement/nodes.ts';
import { placeSandbox } from '../../placement/place.ts';
import type { VolumeRecord } from '../record.ts';
import { isCopyDue } from '../rules/copy-due.ts';
import type { VolumeCopies } from '../rules/volume-copies.ts';
import { usedVolumes } from '../store/moves.ts';

/** How often this runs, milliseconds. */
export const volumeCopiesIntervalMs = 5_000;
/** Volumes that one process of control moves or copies at a time. */
const atOnce = 2;
/** How long a volume that could not be moved or copied is left alone. */
const retryMs = 15_000;

/** Dependencies of looking after the volumes of a cluster. */
type CopiesDeps = { clock: Clock; db: Db; log: Log; machines: Machines; nodes: Nodes; volumeCopies: VolumeCopies };

/**
 * Moves the volumes of machines that are being emptied by moves, where no sandbox has them, and copies changed volumes
 * to the store. Each round begins what it can and does not wait; `settled` waits for it.
 */
export function volumeKeeping(deps: CopiesDeps): { round(): Promise<void>; settled(): Promise<void> } {
  const { clock, db, log, machines, nodes, volumeCopies } = deps;
  const semaphore = createSemaphore(atOnce);
  const underWay = new Map<string, Promise<void>>();
  const failedAtMs = new Map<string, number>();

  const begin = ({ volumeId, nodeId }: VolumeRecord, what: string, work: () => Promise<void>) => {
    if (underWay.has(volumeId) || failedAtMs.has(volumeId)) return;
    const done = semaphore
      .run(work)
      .catch((error: unknown) => {
        // Somebody uses it, or another process works on it.
        if (error instanceof AtollError && error.code === 'conflict') return;
        failedAtMs.set(volumeId, performance.now());
        log.warn(`a volume could not be ${what}, which is tried again`, { volumeId, nodeId, error: messageOf(error) });
      })
      .finally(() => underWay.delete(volumeId));
    underWay.set(volumeId, done);
  };

  return {
    async round() {
      for (const [volumeId, atMs] of failedAtMs) if (performance.now() - atMs > retryMs) failedAtMs.delete(volumeId);
      await volumeCopies.settle();
      const emptied = await nodesToEmpty(db);
      const byNode = Map.groupBy(await usedVolumes(db), ({ volume }) => volume.nodeId);
      for (const { node, machine } of machines.usable()) {
        const { nodeId } = node;
        const used = byNode.get(nodeId);
        if (!used) continue;
        const states = new Map((await machine.volumeCopies.states()).map(state => [state.volumeId, state]));
        const moves = (emptied.get(nodeId) ?? 'pausing') !== 'pausing';
        for (const { volume, users } of used) {
          const state = states.get(volume.volumeId);
          if (!state || volume.movingTo !== null) continue;
          if (moves && users.length === 0)
            begin(volume, 'moved', async () => volumeCopies.move(volume, (await placeSandbox(nodes, db)).nodeId));
          else if (volumeCopies.areStored && isCopyDue(volume, state, clock()))
            begin(volume, 'copied to the store', () => volumeCopies.copy(volume, state));
        }
      }
    },
    async settled() {
      await Promise.all(underWay.values());
    },
  };
}
