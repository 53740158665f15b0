import { rmdir, unlink } from 'node:fs/promises';
import { AtollError } from '../../base/error.ts';
import { errnoOf, fileError } from './errno.ts';

/**
 * Removes what is at `path`: a directory with everything in it, a final link itself. It is fine if nothing is there.
 */
export async function removePath(path: string, initPath: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return;
    // unlink(2) on a directory: EISDIR on Linux, EPERM in POSIX.
    if (errno !== 'EISDIR' && errno !== 'EPERM') throw fileError(error, path);
    await removeDirectory(path, initPath);
  }
}

// Bun's own `rm` takes half a minute for a tree of 1500 levels, and looks paths up anew at every step.
async function removeDirectory(path: string, initPath: string): Promise<void> {
  const isEmptied = await rmdir(path).then(
    () => true,
    error => (errnoOf(error) === 'ENOTEMPTY' ? false : Promise.reject(fileError(error, path))),
  );
  if (isEmptied) return;
  const child = Bun.spawn([initPath, 'remove', withoutFinalSlashes(path)], {
    cwd: '/',
    env: {},
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const text = await new Response(child.stderr).text();
  if ((await child.exited) !== 0)
    throw new AtollError('internal', `'${path}' was not removed whole: ${text.trim().replace(/^\d+ /, '')}`);
}

function withoutFinalSlashes(path: string): string {
  let end = path.length;
  while (end > 1 && path[end - 1] === '/') end--;
  return path.slice(0, end);
}
