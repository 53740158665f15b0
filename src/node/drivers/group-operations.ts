import { AtollError } from '../../base/error.ts';
import type { Cgroups } from '../cgroup/cgroup.ts';
import type { Slot } from '../layout.ts';
import type { Driver } from './driver.ts';

const processesGoneTimeoutMs = 10_000;
/** How long freezing processes may take: only a process that waits inside the kernel takes any time. */
const freezeTimeoutMs = 5_000;

type GroupOperations = Pick<
  Driver,
  | 'hasten'
  | 'freeze'
  | 'thaw'
  | 'beginFreeze'
  | 'frozen'
  | 'isFrozen'
  | 'processes'
  | 'cgroupPath'
  | 'killFrozen'
  | 'endProcesses'
  | 'memoryUsed'
  | 'outOfMemoryKills'
>;

/** What a driver does through the control group that all processes of a sandbox are in. */
export function groupOperations(cgroups: Cgroups, cgroupOf: (slot: Slot) => string): GroupOperations {
  return {
    hasten(slot) {
      try {
        cgroups.hasten(cgroupOf(slot));
      } catch {
        // Its processes then end with the processor time that they have, which takes longer.
      }
    },

    async freeze(slot) {
      const path = cgroupOf(slot);
      cgroups.freeze(path);
      try {
        await untilFrozen(cgroups, path);
      } catch (error) {
        cgroups.thaw(path);
        throw error;
      }
    },

    frozen: slot => untilFrozen(cgroups, cgroupOf(slot)),
    thaw: slot => cgroups.thaw(cgroupOf(slot)),
    beginFreeze: slot => cgroups.freeze(cgroupOf(slot)),
    isFrozen: slot => cgroups.isFrozen(cgroupOf(slot)),
    processes: slot => cgroups.processes(cgroupOf(slot)),
    cgroupPath: cgroupOf,

    killFrozen: slot => cgroups.kill(cgroupOf(slot)),

    endProcesses: slot => endProcesses(cgroups, cgroupOf(slot)),
    memoryUsed: slot => cgroups.memoryUsed(cgroupOf(slot)),
    outOfMemoryKills: slot => cgroups.outOfMemoryKills(cgroupOf(slot)),
  };
}

async function untilFrozen(cgroups: Cgroups, path: string): Promise<void> {
  const deadline = performance.now() + freezeTimeoutMs;
  while (!cgroups.isFrozen(path)) {
    if (performance.now() > deadline)
      throw new AtollError(
        'unavailable',
        'the sandbox can’t be frozen: a process of it waits for the kernel; try again later',
      );
    await Bun.sleep(1);
  }
}

/** Kills the remaining processes of a group, until it stays empty. */
export async function endProcesses(cgroups: Cgroups, path: string): Promise<void> {
  const deadline = performance.now() + processesGoneTimeoutMs;
  while (!cgroups.isEmpty(path)) {
    if (performance.now() > deadline)
      throw new AtollError(
        'internal',
        `processes of ${path} do not end: ${cgroups.processes(path).slice(0, 10).join(' ')}`,
      );
    cgroups.kill(path);
    await Bun.sleep(1);
  }
}
