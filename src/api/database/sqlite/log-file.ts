import { open, type FileHandle } from 'node:fs/promises';
import { systemCodeOf } from '../../../base/error.ts';

/** The write-ahead log of an SQLite database, beside it. */
type LogFile = {
  /**
   * Writes the log out; a checkpoint has written out what is not in it any more. Fails as the disk does: what was
   * committed since the last success may be on the disk then, or not, and the next call tries again.
   */
  writeOut(): Promise<void>;
  close(): Promise<void>;
};

/**
 * The kernel takes what a disk has refused for written: it says so once to each descriptor that was open by then, and
 * the next `fdatasync` succeeds. As frames behind a missing one count for nothing, whatever is committed later would be
 * lost with it. So one descriptor stays open, and after a failure all that the log has is put into the database, from
 * memory, where the kernel still has it, and the log begins anew: `moveIntoDatabase` does that or throws. To write the
 * log itself again would not help: ext4 goes on taking blocks that were new for ones that nothing was written to.
 * Source: fsync(2), errors.
 *
 * The database itself must not be opened here: to close any descriptor of a file gives up the locks that this process
 * has on it.
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
