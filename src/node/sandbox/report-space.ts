import type { Log } from '../../base/telemetry/log.ts';
import type { Layout } from '../layout.ts';
import type { SandboxLogs } from '../logs/sandbox-logs.ts';
import type { MountedDisk } from '../space/mounted-disks.ts';
import type { Incidents } from './incidents.ts';
import type { Processes } from './slot/processes.ts';
import { slotMountPoint } from './slot/slot-disk.ts';
import type { Sandboxes } from './state/sandboxes.ts';

/** What reporting needs. */
type ReportParts = {
  sandboxes: Sandboxes;
  layout: Layout;
  logs: Pick<SandboxLogs, 'write'>;
  incidents: Pick<Incidents, 'report'>;
  log: Log;
};

/** Writes into the logs of running sandboxes that they can't write anything new, or that they can again. */
export function reportSpace({ sandboxes, logs }: Pick<ReportParts, 'sandboxes' | 'logs'>, held: boolean): void {
  const message = held
    ? 'the disk of the platform is nearly full: nothing new can be written until there is room'
    : 'there is room on the disk of the platform again';
  for (const { sandboxId } of sandboxes.running())
    logs.write(sandboxId, held ? 'error' : 'info', 'sandbox', message, { event: held ? 'disk_full' : 'disk_free' });
}

/**
 * Reports a sandbox whose file system has given up writing, and the way out: in the logs, in its state and among the
 * incidents. False: no sandbox runs on the disk (yet).
 */
export function reportFailedDisk(parts: ReportParts, disk: MountedDisk): boolean {
  const { sandboxes, layout, logs, log } = parts;
  const failed = sandboxes.running().find(({ processes }) => slotMountPoint(layout, processes.slot) === disk.point);
  if (!failed) return false;
  const { sandboxId, processes } = failed;
  log.error(
    'the disk of a sandbox has failed and takes no more changes; a pause with its files and a resume repair it',
    { sandboxId, device: disk.device },
  );
  const message = 'its disk has failed and is read-only: pause it without memory and resume it, which repairs it';
  logs.write(sandboxId, 'error', 'sandbox', message, { event: 'disk_failed' });
  void sandboxes.inTurn(sandboxId, async () => markFailed(parts, sandboxId, processes));
  return true;
}

/** If a pause or a kill that was under way has taken the disk away, nothing is left to report. */
function markFailed({ sandboxes, incidents }: ReportParts, sandboxId: string, processes: Processes): void {
  const state = sandboxes.get(sandboxId);
  if (state?.kind !== 'running' || state.processes !== processes) return;
  sandboxes.transition(state, { ...state, diskFailed: true });
  incidents.report({ sandboxId, executionId: state.record.executionId, reason: 'disk_failed' });
}
