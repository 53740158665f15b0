import { constants, openSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import type { VolumeEntry } from '../../protocol/volume.ts';
import type { NewFile } from './file-content.ts';
import type { VolumeUse } from './mounted-volumes.ts';

/** Files that are being written at a time. */
const writesMax = 128;
/** The longest that a client may take for one. */
const writeTimeoutMs = 3_600_000;
/** What an upload must leave of the host's disk when it begins: running sandboxes must be able to go on writing. */
const diskReserveBytes = 256 * 1024 ** 2;

type Write = { file: NewFile; use: VolumeUse; timer: Timer };

/** The files that are being written, by the ID that their writer knows. */
type Writes = {
  /**
   * A place for one that is to begin, to be given back when it has, or can't. Fails with `unavailable` or `no_space`
   * where there is none.
   */
  admit(): Promise<Disposable>;
  /**
   * Answers a descriptor of the caller's own: one that he goes on writing to when this has ended must not be somebody
   * else's by then.
   */
  begin(file: NewFile, use: VolumeUse): { writeId: string; descriptor: number };
  keep(writeId: string): Promise<VolumeEntry>;
  drop(writeId: string): Promise<void>;
};

/** `dir` is on the disk that holds the volumes. */
export function createWrites(dir: string): Writes {
  const writes = new Map<string, Write>();
  let beginning = 0;
  const take = (writeId: string): Write => {
    const write = writes.get(writeId);
    if (!write) throw new AtollError('not_found', 'The upload has ended already');
    writes.delete(writeId);
    clearTimeout(write.timer);
    return write;
  };
  const end = async <T>(writeId: string, work: (file: NewFile) => Promise<T>): Promise<T> => {
    const { file, use } = take(writeId);
    try {
      return await use.change(() => work(file));
    } finally {
      use.release();
    }
  };
  const keep = (writeId: string) => end(writeId, file => file.keep());
  const drop = (writeId: string) => end(writeId, file => file.drop());
  return {
    async admit() {
      if (writes.size + beginning >= writesMax)
        throw new AtollError(
          'unavailable',
          `${writesMax} files are being written to volumes, which is the most at a time; try again later`,
        );
      // Before anything is waited for: of many that come at once each would see the place of all others free.
      beginning++;
      const place = { [Symbol.dispose]: () => void beginning-- };
      try {
        const { bavail, bsize } = await statfs(dir);
        if (bavail * bsize >= diskReserveBytes) return place;
        throw new AtollError('no_space', 'The disk that holds the volumes is full');
      } catch (error) {
        place[Symbol.dispose]();
        throw error;
      }
    },
    begin(file, use) {
      const descriptor = openSync(`/proc/self/fd/${file.file.fd}`, constants.O_WRONLY);
      const writeId = newUuid();
      const timer = setTimeout(() => void drop(writeId).catch(() => {}), writeTimeoutMs);
      timer.unref();
      writes.set(writeId, { file, use, timer });
      return { writeId, descriptor };
    },
    keep,
    drop,
  };
}
