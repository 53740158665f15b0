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

/** Takes the free loop devices away from a machine; answers what gives them back. */
export async function takeLoopDevices({ dataDir }: { dataDir: string }): Promise<() => Promise<void>> {
  const found = await run('pgrep', '-f', `helper ${join(runFolder, installationOf(dataDir))}/helper-`);
  const [helper = ''] = found.split('\n');
  // Its mounts are its own: other machines of the test, which have the same kernel, keep theirs.
  const inside = (...command: string[]) => run('nsenter', `--mount=/proc/${helper}/ns/mnt`, ...command);
  await inside('mount', '--bind', '/dev/null', '/dev/loop-control');
  return async () => void (await inside('umount', '/dev/loop-control'));
}

/** Leaves the sandboxes of a machine so much memory beyond what they have; answers what gives them all of it again. */
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
