import { closeSync, constants, fstatSync, openSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AtollError } from '../../base/error.ts';

/** The files of a job, open until they are handed over. */
type JobFiles = Disposable & { input?: number; output?: number };

/**
 * Opens the file that a job reads, and makes the one that it writes. Errors: `invalid` if the file at the path is not
 * the one meant; those of the system calls.
 */
export function openJobFiles({ input, output }: { input?: string; output?: string }): JobFiles {
  const read = input === undefined ? undefined : openInput(input);
  try {
    const written = output === undefined ? undefined : openSync(output, 'wx+', 0o600);
    const opened = [read, written].filter(fd => fd !== undefined);
    return {
      ...(read !== undefined && { input: read }),
      ...(written !== undefined && { output: written }),
      [Symbol.dispose]: () => opened.forEach(fd => closeSync(fd)),
    };
  } catch (error) {
    if (read !== undefined) closeSync(read);
    throw error;
  }
}

/**
 * The file may be in another user's directory: neither it nor its directory may be a link, and opening must not block.
 */
function openInput(path: string): number {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const directory = dirname(path);
  // The check comes after opening: a file that was checked before could have been exchanged.
  const meant = join(realpathSync(dirname(directory)), basename(directory), basename(path));
  if (fstatSync(fd).isFile() && readlinkSync(`/proc/self/fd/${fd}`) === meant) return fd;
  closeSync(fd);
  throw new AtollError('invalid', 'what should be read is not a file of its directory');
}
