import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { syncPath } from '../../../base/sync.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Kept } from '../../../protocol/node.ts';
import type { Disks } from '../../disks/disks.ts';
import type { Helper } from '../../native/helper.ts';
import type { ProgramKind } from '../../native/program-places.ts';
import { checksumsFile } from '../../snapshot/checksums.ts';
import type { PausedRecord } from '../records/record.ts';
import type { Records } from '../records/record-store.ts';
import { isWhole, repairDisk, unused } from './disk.ts';
import { removeMemory } from './memory-files.ts';

/** Time to read and hash a whole disk, with cold caches. */
const checksumTimeoutMs = 10 * 60_000;

/** What a paused sandbox keeps on the host's disk, under checksums. */
export type KeptFiles = {
  /** Writes checksums over what is kept; when this settles, everything is on the host's disk. Errors: `internal`. */
  writeChecksums(sandboxId: string): Promise<void>;
  /**
   * Like `writeChecksums`, for files that may be damaged: if checksums were due but not written, a loss of power may
   * have left the disk in any state. Files that were kept without memory are first checked and repaired. Errors:
   * `internal`.
   */
  writeLateChecksums(sandboxId: string, kept: Kept): Promise<void>;
  /**
   * For memory without checksums. The memory knows the disk as it was: if the disk is damaged, this records that only
   * the files are kept, and removes the memory. Answers the record after that. Errors: `internal`, and those of
   * `Records.write`.
   */
  judgeMemory(record: PausedRecord): Promise<PausedRecord>;
  /** `teamId`: the team that it belongs to. Errors: `internal` if something that is kept is missing or changed. */
  verify(sandboxId: string, teamId?: string): Promise<void>;
  /** Whether there are checksums. */
  hasChecksums(sandboxId: string): boolean;
  /** Called before any kept file is changed: otherwise a crash after the change would make it look damaged. */
  removeChecksums(sandboxId: string): Promise<void>;
};

/** What the paused sandboxes of a node keep. */
export function createKeptFiles(options: {
  helper: Helper;
  helperBinary: string;
  disks: Disks;
  records: Records;
  log: Log;
}): KeptFiles {
  const { helper, helperBinary, disks, records, log } = options;
  const run = (program: 'seal' | 'verify', sandboxId: string, kind: ProgramKind, teamId?: string) =>
    helper.spawn([helperBinary, program, records.keptOf(sandboxId)], { timeoutMs: checksumTimeoutMs, kind, teamId });
  const checksumsOf = (sandboxId: string) => join(records.keptOf(sandboxId), checksumsFile);
  const writeChecksums = async (sandboxId: string) => {
    await unused(disks, records.diskOf(sandboxId));
    const { status, output } = await run('seal', sandboxId, 'long');
    if (status !== 0)
      throw new AtollError('internal', `the checksums of a paused sandbox could not be written: ${output.trim()}`);
  };
  return {
    writeChecksums,
    async writeLateChecksums(sandboxId, kept) {
      if (kept === 'filesystem') {
        const image = records.diskOf(sandboxId);
        await unused(disks, image);
        await repairDisk({ helper, log }, image, { all: true });
      }
      await writeChecksums(sandboxId);
    },
    async judgeMemory(record) {
      const { sandboxId, kept } = record;
      if (kept === 'filesystem') return record;
      const image = records.diskOf(sandboxId);
      await unused(disks, image);
      if (await isWhole({ helper }, image)) return record;
      log.error('the memory of a paused sandbox is removed: its disk is damaged', { sandboxId });
      // This comes before the disk is repaired: after a crash behind that, the disk would look whole.
      const files: PausedRecord = { ...record, kept: 'filesystem' };
      await records.write(files);
      await removeMemory(records, sandboxId);
      return files;
    },
    async verify(sandboxId, teamId) {
      const { status, output } = await run('verify', sandboxId, 'check', teamId);
      if (status !== 0)
        throw new AtollError('internal', `what sandbox ${sandboxId} has kept is damaged: ${output.trim()}`, {
          detail: 'sandbox_state_damaged',
        });
    },
    // Checksums that a crash cut off are empty: earlier versions named the file before it was written.
    hasChecksums: sandboxId => (statSync(checksumsOf(sandboxId), { throwIfNoEntry: false })?.size ?? 0) > 0,
    async removeChecksums(sandboxId) {
      rmSync(checksumsOf(sandboxId), { force: true });
      await syncPath(records.keptOf(sandboxId));
    },
  };
}
