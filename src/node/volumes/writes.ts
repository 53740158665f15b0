import { constants, openSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import type { VolumeEntry } from '../../protocol/volume.ts';
import type { Space } from '../space/space.ts';
import type { NewFile } from './file-content.ts';
import type { VolumeUse } from './mounted-volumes.ts';

/** How many files may be written at a time. */
const writesMax = 128;
/** The longest time that a client may take for one file. */
const writeTimeoutMs = 3_600_000;

type Write = { file: NewFile; use: VolumeUse; timer: Timer };

/** The files that are being written, by the ID that their writer knows. */
type Writes = {
  /**
   * A place for a write that is about to begin; give it back when the write has begun, or can't. Throws `unavailable`
   * if there is no place, and `no_space` if it would take from the disk's reserve.
   */
  admit(): Disposable;
  /**
   * Answers a descriptor that the caller owns: if the caller still writes to it after the end, it must not be somebody
   * else's by then.
   */
  begin(file: NewFile, use: VolumeUse): { writeId: string; descriptor: number };
  /** Errors: `unavailable` if it has already ended. */
  keep(writeId: string): Promise<VolumeEntry>;
  drop(writeId: string): Promise<void>;
};

/** Makes an empty list of writes. `space` is that of the disk that holds the volumes. */
export function createWrites(space: Pick<Space, 'require'>): Writes {
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
  const keep = async (writeId: string) => {
    if (!writes.has(writeId))
      throw new AtollError('unavailable', 'The upload was cut off, or took longer than an hour: send it again', {
        retryAfterSeconds: 1,
      });
    return await end(writeId, file => file.keep());
  };
  const drop = (writeId: string) => end(writeId, file => file.drop());
  return {
    admit() {
      if (writes.size + beginning >= writesMax)
        throw new AtollError(
          'unavailable',
          `${writesMax} files are being written to volumes, which is the most at a time; try again later`,
        );
      space.require('an upload to a volume');
      // Counted before anything is waited for: otherwise each of many that come at once would see the places of all
      // others as free.
      beginning++;
      return { [Symbol.dispose]: () => void beginning-- };
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
