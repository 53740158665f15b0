import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../../support/platform.ts';
import { type Finished, runToEnd, start, textOf, waitFor } from '../../support/process.ts';

/** Larger files are compared by size and time: disks and layers are sparse and long. */
const hashedBytesMax = 4 * 1024 ** 2;
/** Leftovers of SQLite and of the lock of a start, which mean nothing. */
const passing = /(-wal|-shm|\/lock)$/;

/** Every file of a directory with its content: equal results mean that nothing was touched. */
export function contentOf(directory: string): string[] {
  return (readdirSync(directory, { recursive: true }) as string[])
    .map(name => ({ name, stat: lstatSync(join(directory, name)) }))
    .filter(({ name, stat }) => stat.isFile() && !passing.test(`/${name}`))
    .map(
      ({ name, stat }) =>
        `${name} ${stat.size} ${
          stat.size <= hashedBytesMax
            ? createHash('sha256')
                .update(readFileSync(join(directory, name)))
                .digest('hex')
            : stat.mtimeMs
        }`,
    )
    .toSorted();
}

export const atoll = (env: NodeJS.ProcessEnv, ...args: string[]): Promise<Finished> =>
  runToEnd([join(repository, 'bin/atoll'), ...args], { env, timeoutMs: 120_000 });

/**
 * Starts the platform until it serves and ends it as Ctrl-C does; if it does not serve within `timeoutMs`, it is
 * killed. Answers its standard error.
 */
export async function upOnce(
  argv: string[],
  env: NodeJS.ProcessEnv,
  timeoutMs = 30_000,
): Promise<{ served: boolean; stderr: string }> {
  const child = start(argv, { env: { ...env, ATOLL_PORT: '0' } });
  const [stdout, stderr] = [textOf(child, 'stdout'), textOf(child, 'stderr')];
  const closed = once(child, 'close');
  await Promise.race([
    waitFor('the platform to serve', () => stdout().includes('\n'), timeoutMs).catch(() => {}),
    closed,
  ]);
  child.kill(stdout().includes('\n') ? 'SIGINT' : 'SIGKILL');
  await closed;
  return { served: stdout().includes('\n'), stderr: stderr() };
}
