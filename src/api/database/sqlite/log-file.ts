import { open, type FileHandle } from 'node:fs/promises';
import { systemCodeOf } from '../../../base/error.ts';

/** The write-ahead log of an SQLite database, a file beside it. */
type LogFile = {
  /**
   * Syncs the log to the disk; what is no longer in the log was synced by a checkpoint. Fails as the disk does: commits
   * since the last success may or may not be on the disk then, and the next call tries again.
   */
  writeOut(): Promise<void>;
  close(): Promise<void>;
};

/**
 * The kernel counts data that a disk has refused as written: it reports the failure once to each descriptor that was
 * open by then, and the next `fdatasync` succeeds. As frames after a missing one count for nothing, all later commits
 * would be lost with it. So one descriptor stays open, and after a failure the whole log is copied into the database,
 * from memory, where the kernel still has it, and the log starts over: `moveIntoDatabase` does that or throws. Writing
 * the log itself again would not help: ext4 still treats new blocks as never written. Source: fsync(2), errors.
 *
 * The database itself must not be opened here: closing any descriptor of a file gives up this process's locks on it.
 */
export function logFile(path: string, moveIntoDatabase: () => void): LogFile {
  let file: FileHandle | undefined;
  let isDoubtful = false;
  const opened = async () => {
    try {
      return (file ??= await open(path, 'r'));
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT') return undefined; // nothing was written yet
      throw error;
    }
  };
  return {
    async writeOut() {
      const log = await opened();
      if (!log) return;
      try {
        await log.datasync();
        if (isDoubtful) moveIntoDatabase();
        isDoubtful = false;
      } catch (error) {
        isDoubtful = true;
        throw error;
      }
    },
    async close() {
      await file?.close();
      file = undefined;
    },
  };
}
