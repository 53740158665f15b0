import { rm } from 'node:fs/promises';
import { AtollError, messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Layers } from '../../layers/store.ts';
import type { Layout } from '../../layout.ts';
import type { Helper } from '../../native/helper.ts';
import { checkpointToPause } from '../../snapshot/checkpoint.ts';
import { criuKilled, sandboxEnded } from '../../snapshot/criu.ts';
import { makeDurable } from '../../snapshot/checksums.ts';
import type { Space } from '../../space/space.ts';
import type { Volumes } from '../../volumes/volumes.ts';
import { pausedRecord, type PausedRecord, type RunningRecord } from '../records/record.ts';
import type { Records } from '../records/record-store.ts';
import { isAlive } from '../records/start-ticks.ts';
import type { Processes } from '../slot/processes.ts';
import { slotMountPoint } from '../slot/slot-disk.ts';
import {
  checkpointBytes,
  checkpointSource,
  explainCheckpoint,
  requireCheckpoints,
  type CheckpointSupport,
} from './checkpoint-support.ts';
import { syncDisk } from './disk.ts';
import { memoryOf } from './memory-files.ts';

/** Room that a pause must leave on the host's disk: running sandboxes must be able to go on writing. */
const diskReserveBytes = 256 * 1024 ** 2;

/** What keeping sandboxes needs. */
type KeepParts = {
  layout: Layout;
  helper: Helper;
  layers: Layers;
  volumes: Volumes;
  space: Space;
  records: Records;
  checkpoints: CheckpointSupport;
  /** How long the processes of a paused sandbox stay frozen before they are ended; 0: they are ended at once. */
  frozenMs: number;
  log: Log;
};

/** A sandbox whose processes run. */
export type KeepSource = { record: RunningRecord; processes: Processes };

/** What to keep of it, and what is known of that. */
export type KeepWhat = {
  memory: boolean;
  /** Whether its agent does not answer. */
  agentUnresponsive: boolean;
};

/**
 * Keeps a sandbox that is being paused: its files, and its memory if `memory` asks for it. Answers the record, which
 * is on the disk. From then on the sandbox is paused, whatever happens: its processes are frozen if the record says
 * so, and otherwise have ended or are to be ended. A failed keep leaves it running. Errors: `precondition` (its memory
 * can't be kept, and why), `no_space`, `internal`.
 */
export async function keepSandbox(parts: KeepParts, source: KeepSource, what: KeepWhat): Promise<PausedRecord> {
  const bytes = what.memory ? await memoryBytes(parts, source) : 0;
  // A disk that fills up while a sandbox is paused hurts the running ones.
  using _room = parts.space.reserve('what a paused sandbox keeps', bytes, diskReserveBytes);
  return await (what.memory ? keepMemory(parts, source, what) : keepFiles(parts, source));
}

function memoryBytes(parts: KeepParts, { record, processes }: KeepSource): Promise<number> {
  const host = requireCheckpoints(parts.checkpoints, processes.driver);
  const { sandboxId, teamId } = record;
  return checkpointBytes(host, processes, { disk: parts.records.diskOf(sandboxId), teamId });
}

async function keepFiles(parts: KeepParts, { record, processes }: KeepSource): Promise<PausedRecord> {
  const { records, volumes } = parts;
  const { slot, driver } = processes;
  const paused = pausedRecord(record, 'filesystem', null);
  let written = false;
  await driver.freeze(slot);
  try {
    // This comes before anything ends: if the host's disk is full, the sandbox runs on.
    await syncDisk(parts, slot, records.diskOf(record.sandboxId));
    await volumes.sync(slot);
    written = true;
    await records.write(paused);
    return paused;
  } catch (error) {
    if (written) await recordAsRunning(parts, record);
    driver.thaw(slot);
    throw error;
  }
}

async function keepMemory(
  parts: KeepParts,
  { record, processes }: KeepSource,
  { agentUnresponsive }: KeepWhat,
): Promise<PausedRecord> {
  const { layout, layers, volumes, records, frozenMs } = parts;
  const { sandboxId, executionId, pid, startTicks, image } = record;
  const { slot, driver } = processes;
  const host = requireCheckpoints(parts.checkpoints, driver);
  const disk = records.diskOf(sandboxId);
  const directory = memoryOf(records, sandboxId);
  const paused = {
    ...pausedRecord(record, 'memory', { slot: slot.number, pid, startTicks }),
    ...(agentUnresponsive && { agentUnresponsive }),
  };
  const source = checkpointSource(processes, {
    disk,
    diskMount: slotMountPoint(layout, slot),
    layers: await Promise.all(image.layers.map(digest => layers.mount(digest))),
    volumes: record.volumes.map(({ path }) => path),
    ...(record.teamId !== undefined && { teamId: record.teamId }),
  });
  await rm(directory, { recursive: true, force: true });
  let written = false;
  try {
    const end = await checkpointToPause(host, source, {
      directory,
      name: `pause-${slot.name}`,
      facts: { sandboxId, executionId },
      then: frozenMs > 0 ? 'freeze' : 'end',
      // All that is kept is on the host's disk, and recorded, before the first process ends.
      alongside: [() => syncDisk(parts, slot, disk), () => volumes.sync(slot)],
      async onComplete() {
        await makeDurable(host, directory, { written: true });
        written = true;
        await records.write(paused);
      },
    });
    return end === 'freeze' ? paused : { ...paused, frozen: null };
  } catch (error) {
    // A CRIU that is killed between two steps can take a process with it. If that is the sandbox's first process, only
    // the files can be kept.
    if (error instanceof AtollError && hasEnded(error, record)) {
      const { sandboxId } = record;
      parts.log.error('the processes of a sandbox ended in its pause; it is paused with its files', {
        sandboxId,
        error: messageOf(error),
      });
      return keepFilesOfEnded(parts, { record, processes });
    }
    if (written) await recordAsRunning(parts, record);
    driver.thaw(slot);
    await rm(directory, { recursive: true, force: true });
    throw explainCheckpoint(error);
  }
}

/** The sandbox runs on, but a failed write may already have its name: a restart must not take it for paused. */
async function recordAsRunning({ records, log }: KeepParts, record: RunningRecord): Promise<void> {
  await records
    .write(record)
    .catch(error =>
      log.error('a sandbox that was not paused is recorded as paused', {
        sandboxId: record.sandboxId,
        error: messageOf(error),
      }),
    );
}

/** Whether a sandbox has ended with the CRIU of a failed pause, or is about to. */
function hasEnded({ detail }: AtollError, record: RunningRecord): boolean {
  return detail === sandboxEnded || (detail === criuKilled && !isAlive(record));
}

/**
 * Keeps the files of a sandbox whose processes have ended, or are about to, once the last of them has ended. Errors:
 * `no_space`, `internal`.
 */
export async function keepFilesOfEnded(
  parts: Pick<KeepParts, 'layout' | 'helper' | 'volumes' | 'records'>,
  { record, processes }: KeepSource,
): Promise<PausedRecord> {
  const { sandboxId } = record;
  const paused = pausedRecord(record, 'filesystem', null);
  await processes.ended;
  await syncDisk(parts, processes.slot, parts.records.diskOf(sandboxId));
  await parts.volumes.sync(processes.slot);
  await parts.records.write(paused);
  return paused;
}
