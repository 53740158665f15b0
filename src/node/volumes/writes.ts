import { constants, openSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import type { VolumeEntry } from '../../protocol/volume.ts';
import type { Space } from '../space/space.ts';
import type { NewFile } from './file-content.ts';
import type { VolumeUse } from './mounted-volumes.ts';

/** Files that are being written at a time. */
const writesMax = 128;
/** The longest that a client may take for one. */
const writeTimeoutMs = 3_600_000;

type Write = { file: NewFile; use: VolumeUse; timer: Timer };

/** The files that are being written, by the ID that their writer knows. */
type Writes = {
  /**
   * A place for one that is to begin, to be given back when it has, or can't. Throws `unavailable` where there is
   * none, and `no_space` where it would take from the disk's reserve.
   */
  admit(): Disposable;
  /**
   * Answers a descriptor of the caller's own: one that he goes on writing to when this has ended must not be somebody
   * else's by then.
   */
  begin(file: NewFile, use: VolumeUse): { writeId: string; descriptor: number };
  /** Errors: `unavailable` where it has ended already. */
  keep(writeId: string): Promise<VolumeEntry>;
  drop(writeId: string): Promise<void>;
};

/** Makes a list of writes that is empty. `space`: of the disk that holds the volumes. */
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
      // Before anything is waited for: of many that come at once each would see the place of all others free.
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
