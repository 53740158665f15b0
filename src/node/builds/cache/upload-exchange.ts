import { constants, existsSync, fstatSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { syncPath } from '../../../base/sync.ts';
import type { UploadExchange, UploadRef } from '../../../protocol/upload.ts';
import type { Room } from '../../space/reservations.ts';
import type { Space } from '../../space/space.ts';
import { countWritten } from '../../space/written.ts';
import { uploadedFilesIn } from './uploaded-files.ts';

/** How many archives may arrive at a time. */
const writesMax = 32;
/** The longest time that one archive may take. */
const writeTimeoutMs = 3_600_000;

type Write = { temporary: string; file: string; room: Room; timer: Timer };

/**
 * The uploaded archives of a machine in a cluster, in `dir`. There the directory is the node's own, and control sends
 * what builds need. `space` is that of the disk that `dir` is on.
 */
export function uploadExchange(dir: string, space: Pick<Space, 'reserve'>): UploadExchange {
  const files = uploadedFilesIn(dir);
  const writes = new Map<string, Write>();
  const take = (writeId: string): Write => {
    const write = writes.get(writeId);
    if (!write) throw new AtollError('not_found', 'The archive has ended already');
    writes.delete(writeId);
    clearTimeout(write.timer);
    return write;
  };
  const drop = async (writeId: string) => {
    const { temporary, room } = take(writeId);
    using _room = room;
    rmSync(temporary, { force: true });
  };
  return {
    missing: async uploads => uploads.filter(({ teamId, hash }) => files.path(teamId, hash) === undefined),
    async openRead({ teamId, hash }) {
      const path = files.path(teamId, hash);
      if (path === undefined) throw new AtollError('not_found', 'The archive is not on this machine');
      const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
      return { sizeBytes: fstatSync(descriptor).size, descriptor };
    },
    async openWrite(upload, sizeBytes) {
      const file = fileOf(dir, upload);
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      using undo = new DisposableStack();
      const room = undo.use(admit(space, writes.size, sizeBytes));
      const writeId = newUuid();
      const temporary = `${file}.${writeId}`;
      const descriptor = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
      undo.move();
      const timer = setTimeout(() => void drop(writeId).catch(() => {}), writeTimeoutMs);
      timer.unref();
      writes.set(writeId, { temporary, file, room: countWritten(room, temporary), timer });
      return { writeId, descriptor };
    },
    async keepWrite(writeId, sizeBytes) {
      const { temporary, file, room } = take(writeId);
      using _room = room;
      try {
        const came = statSync(temporary).size;
        if (came !== sizeBytes) throw new AtollError('unavailable', `${came} bytes of ${sizeBytes} have come`);
        await syncPath(temporary);
        renameSync(temporary, file);
      } finally {
        if (existsSync(temporary)) rmSync(temporary, { force: true });
      }
    },
    dropWrite: drop,
  };
}

/** Both parts of the name become parts of a path. */
function fileOf(dir: string, { teamId, hash }: UploadRef): string {
  if (!/^[0-9a-f]{64}$/.test(hash) || !/^[0-9A-Za-z-]+$/.test(teamId))
    throw new AtollError('invalid', 'This is not the name of an archive');
  return join(dir, teamId, hash);
}

/** Nobody else gets in between the question for room and the answer. */
function admit(space: Pick<Space, 'reserve'>, writing: number, sizeBytes: number): Room {
  if (writing >= writesMax)
    throw new AtollError('unavailable', `${writesMax} archives come to this machine, which is the most at a time`, {
      retryAfterSeconds: 1,
    });
  return space.reserve('an archive that comes to this machine', sizeBytes);
}
