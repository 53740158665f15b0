import { AtollError, messageOf } from '../../../base/error.ts';
import type { Kept, ResumeSandbox } from '../../../protocol/node.ts';
import { openSnapshot } from '../../snapshot/restore.ts';
import type { Drivers } from '../../drivers/drivers.ts';
import { requireCheckpoints, type CheckpointSupport } from '../keep/checkpoint-support.ts';
import { repairDisk, unused } from '../keep/disk.ts';
import type { KeptFiles } from '../keep/kept.ts';
import { memoryOf } from '../keep/memory-files.ts';
import type { PausedRecord } from '../records/record.ts';
import { startSandbox, type StartedSandbox, type StartOrder, type StartParts } from './start-sandbox.ts';

/** What starting paused sandboxes needs. */
type StartAgainParts = StartParts & { drivers: Drivers; checkpoints: CheckpointSupport; kept: KeptFiles };

/**
 * Starts a paused sandbox from what is on the host's disk, if that is whole: with its memory, if it has kept that and
 * the request asks for it; otherwise it boots. A failed start answers the error and what is left to begin with:
 * everything, or only the files if some of it has run.
 */
export async function startAgain(
  parts: StartAgainParts,
  record: PausedRecord,
  request: ResumeSandbox,
): Promise<StartedSandbox | { error: unknown; record: PausedRecord }> {
  const { kept, log } = parts;
  const { sandboxId } = record;
  const left = { record };
  // Checksums are missing if the disk was in use or failed when they were due, or the power went.
  const late = !kept.hasChecksums(sandboxId);
  if (!late) await kept.verify(sandboxId, record.teamId);
  await kept.removeChecksums(sandboxId);
  if (late && request.memory) left.record = await kept.judgeMemory(record);
  try {
    return request.memory && left.record.kept === 'memory'
      ? await restoreMemory(parts, left, request)
      : await boot(parts, left, request, late);
  } catch (error) {
    // Damage may have got checksums as it was, and be the cause of this failure: the next start then finds the disk
    // repaired.
    try {
      left.record = await kept.judgeMemory(left.record);
      await kept.writeLateChecksums(sandboxId, left.record.kept);
    } catch (problem) {
      log.error('a sandbox that could not be resumed has no checksums', { sandboxId, error: messageOf(problem) });
    }
    return { error, ...left };
  }
}

/** Brings the processes back as they were. If that fails, `left.record` becomes what is left. */
async function restoreMemory(
  parts: StartAgainParts,
  left: { record: PausedRecord },
  request: ResumeSandbox,
): Promise<StartedSandbox> {
  const { record } = left;
  const { records, drivers, checkpoints } = parts;
  const { sandboxId, agentDir, bootId, controlToken } = record;
  const host = requireCheckpoints(checkpoints, drivers.of(record.driver));
  const snapshot = await openSnapshot(host, memoryOf(records, sandboxId)).catch(error => {
    const isMissing = error instanceof AtollError && error.code === 'not_found';
    throw isMissing || isDamage(error) ? explainDamage(sandboxId, error) : error;
  });
  let written = false;
  try {
    return await startSandbox(parts, orderOf(parts, record, request, 'memory'), {
      kind: 'memory',
      host,
      snapshot,
      agentDir,
      bootId,
      controlToken,
      async beforeRun(running) {
        await records.write(running);
        written = true;
      },
    });
  } catch (error) {
    if (written) {
      // Some of it may have run and changed files that others have in memory: only the files are known to be whole.
      left.record = { ...record, kept: 'filesystem' };
      await records.write(left.record);
    }
    throw isDamage(error) ? explainDamage(sandboxId, error) : error;
  }
}

/**
 * Starts a paused sandbox from its files: new processes, a new boot ID, and nothing that does not outlive a boot.
 * `late`: there were no checksums when they were due.
 */
async function boot(
  parts: StartAgainParts,
  left: { record: PausedRecord },
  request: ResumeSandbox,
  late: boolean,
): Promise<StartedSandbox> {
  const { record } = left;
  if (record.kept === 'memory') {
    // This comes before anything changes the files: processes that have them in memory as they were must not continue.
    const files: PausedRecord = { ...record, kept: 'filesystem' };
    await parts.records.write(files);
    left.record = files;
  }
  const disk = parts.records.diskOf(record.sandboxId);
  if (late) await unused(parts.disks, disk);
  await repairDisk(parts, disk, { all: late });
  return startSandbox(parts, orderOf(parts, record, request, 'filesystem'), { kind: 'files' });
}

function orderOf(
  { drivers }: StartAgainParts,
  { sandboxId, image, driver, resources, volumes }: PausedRecord,
  { nextExecutionId, memory: _, ...settings }: ResumeSandbox,
  resumedFrom: Kept,
): StartOrder {
  const own = { sandboxId, executionId: nextExecutionId, image, resources, volumes };
  return { ...settings, ...own, driver: drivers.toStart(driver), resumedFrom };
}

function isDamage(error: unknown): error is AtollError {
  return error instanceof AtollError && error.detail === 'snapshot_damaged';
}

function explainDamage(sandboxId: string, cause: AtollError): AtollError {
  return new AtollError('internal', `the memory that sandbox ${sandboxId} has kept is damaged: ${cause.message}`, {
    detail: 'sandbox_state_damaged',
    cause,
  });
}
