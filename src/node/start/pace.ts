import type { Log } from '../../base/telemetry/log.ts';
import type { Cgroups } from '../cgroup/cgroup.ts';
import { cgroupRootOf, type Layout } from '../layout.ts';
import type { Helper } from '../native/helper.ts';
import { slotMountPoint } from '../sandbox/slot/slot-disk.ts';
import type { Sandboxes } from '../sandbox/state/sandboxes.ts';
import { mountedDisks } from '../space/mounted-disks.ts';
import { startPacing } from '../space/write-pace.ts';

const defaultBytesPerSecond = 96 * 2 ** 20;

type Rooms = { cgroups: Cgroups; sandboxes: Sandboxes; layout: Layout; helper: Pick<Helper, 'mountsPid'>; log: Log };

/**
 * Limits the pace of disks that are written to continuously, unless the pace is 0; pauses and kills do not wait for
 * it.
 */
export function keepPace(
  { cgroups, sandboxes, layout, helper, log }: Rooms,
  bytesPerSecond = defaultBytesPerSecond,
): { stop(): void } {
  if (bytesPerSecond === 0) return { stop() {} };
  return startPacing({
    cgroups,
    group: cgroupRootOf(layout),
    disks: () => mountedDisks(helper.mountsPid, layout.mounts),
    // A process that waits for the disk ends only once its writes are done.
    isAwaited: point =>
      [...sandboxes.all()].some(
        state =>
          (state.kind === 'pausing' || state.kind === 'ending') &&
          state.processes !== null &&
          slotMountPoint(layout, state.processes.slot) === point,
      ),
    bytesPerSecond,
    log,
  });
}
