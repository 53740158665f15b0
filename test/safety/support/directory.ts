import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../../support/platform.ts';
import { type Finished, runToEnd } from '../../support/process.ts';

/** Larger files are known by their size and time: disks and layers are sparse and long. */
const hashedBytesMax = 4 * 1024 ** 2;
/** What SQLite and the lock of a start leave, and what says nothing. */
const passing = /(-wal|-shm|\/lock)$/;

/** Every file of a directory with its content: equal answers mean that nothing was touched. */
export function contentOf(directory: string): string[] {
  return (readdirSync(directory, { recursive: true }) as string[])
    .map(name => ({ name, stat: lstatSync(join(directory, name)) }))
    .filter(({ name, stat }) => stat.isFile() && !passing.test(`/${name}`))
    .map(({ name, stat }) => `${name} ${stat.size} ${stat.size <= hashedBytesMax ? createHash('sha256').update(readFileSync(join(directory, name))).digest('hex') : stat.mtimeMs}`)
    .toSorted();
}

export const atoll = (env: NodeJS.ProcessEnv, ...args: string[]): Promise<Finished> => runToEnd([join(repository, 'bin/atoll'), ...args], { env, timeoutMs: 120_000 });
