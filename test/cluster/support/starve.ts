import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../../src/base/error.ts';
import { run } from './network.ts';

const runFolder = '/run/atoll';

/** The number of the installation that has this data directory. */
function installationOf(dataDir: string): string {
  const number = readdirSync(runFolder).find(name => {
    const owner = join(runFolder, name, 'owner');
    return /^\d+$/.test(name) && readFileSync(owner, 'utf8').trim() === dataDir;
  });
  if (number === undefined) throw new AtollError('internal', `nothing runs in ${dataDir}`);
  return number;
}

/** Takes the free loop devices away from a machine; answers a function that returns them. */
export async function takeLoopDevices({ dataDir }: { dataDir: string }): Promise<() => Promise<void>> {
  const found = await run('pgrep', '-f', `helper ${join(runFolder, installationOf(dataDir))}/helper-`);
  const [helper = ''] = found.split('\n');
  // Its mounts are its own: the test's other machines, which share the kernel, keep theirs.
  const inside = (...command: string[]) => run('nsenter', `--mount=/proc/${helper}/ns/mnt`, ...command);
  await inside('mount', '--bind', '/dev/null', '/dev/loop-control');
  return async () => void (await inside('umount', '/dev/loop-control'));
}

/**
 * Leaves a machine's sandboxes this much memory beyond what they have; answers a function that gives all of it back.
 */
export function takeMemory({ dataDir }: { dataDir: string }, leftBytes: number): () => void {
  const group = `/atoll${installationOf(dataDir)}`;
  const [first, unified] = [join('/sys/fs/cgroup/memory', group), join('/sys/fs/cgroup', group)];
  const files = readable(join(unified, 'memory.max'))
    ? { now: join(unified, 'memory.current'), limit: join(unified, 'memory.max'), all: 'max' }
    : { now: join(first, 'memory.usage_in_bytes'), limit: join(first, 'memory.limit_in_bytes'), all: '-1' };
  writeFileSync(files.limit, String(Number(readFileSync(files.now, 'utf8')) + leftBytes));
  return () => writeFileSync(files.limit, files.all);
}

function readable(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch {
    return false;
  }
}
