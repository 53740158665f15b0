import { mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../../src/base/if-there.ts';
import { tryCommand } from '../../../src/base/process/command.ts';
import type { TestPlatform } from '../../support/platform.ts';

/** Something that the machine, or a process of the platform, runs out of. */
type Lack = {
  name: string;
  /** Takes it away, and answers a function that gives it back. */
  begin(platform: TestPlatform): Promise<() => Promise<void>>;
};

const cgroups = '/sys/fs/cgroup';
const MiB = 2 ** 20;
/** What a process has left. */
const spare = { descriptors: 3, processes: 2, memoryBytes: 24 * MiB } as const;
/** How much of the host's memory a program leaves. */
const hostMemoryLeftMiB = 700;

/** The present process of a platform's part. */
function partOf(platform: TestPlatform, part: string): number {
  const [child] = childrenOf(platform.pid()).filter(pid => argumentsOf(pid).at(-1) === part);
  if (child === undefined) throw new Error(`there is no process ${part}`);
  return child;
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
const argumentsOf = (pid: number) =>
  ifThere(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'), '')
    .split('\0')
    .filter(Boolean);

/** The cgroup of a process, in either version. */
function groupOf(pid: number, controller: string): string {
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n');
  const line = lines.find(text => text.split(':')[1]?.split(',').includes(controller));
  if (line) return join(cgroups, controller, line.split(':')[2] ?? '');
  return join(cgroups, lines.find(text => text.startsWith('0::'))?.slice('0::'.length) ?? '');
}

/** Sets the first existing file, and answers a function that restores it. */
function set(files: string[], value: string): () => Promise<void> {
  for (const file of files) {
    const before = ifThere(() => readFileSync(file, 'utf8').trim(), undefined);
    if (before === undefined) continue;
    writeFileSync(file, value);
    return async () => ifThere(() => writeFileSync(file, before), undefined);
  }
  throw new Error(`none of ${files.join(', ')} is there`);
}

const descriptors = (part: string): Lack => ({
  name: `descriptors of the ${part}`,
  async begin(platform) {
    const pid = partOf(platform, part);
    const highest = Math.max(...readdirSync(`/proc/${pid}/fd`).map(Number));
    const [, before = ''] = /^Max open files +(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8')) ?? [];
    const [, user = '', group = ''] =
      /^Uid:\t(\d+)[^]*^Gid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    // The soft limit, as the process's own user: this uses no right of the host's.
    const limit = async (count: string) =>
      void (await tryCommand([
        'setpriv',
        `--reuid=${user}`,
        `--regid=${group}`,
        '--clear-groups',
        'prlimit',
        `--pid=${pid}`,
        `--nofile=${count}:`,
      ]));
    await limit(String(highest + 1 + spare.descriptors));
    // A process that has ended has a successor with its own limits.
    return () => limit(before).catch(() => {});
  },
});

const processes = (part: string): Lack => ({
  name: `processes and threads of the ${part}`,
  async begin(platform) {
    const group = groupOf(partOf(platform, part), 'pids');
    const now = Number(readFileSync(join(group, 'pids.current'), 'utf8'));
    return set([join(group, 'pids.max')], String(now + spare.processes));
  },
});

const memory = (part: string): Lack => ({
  name: `memory of the ${part}`,
  async begin(platform) {
    const group = groupOf(partOf(platform, part), 'memory');
    const [used, limit, withSwap] = ['memory.usage_in_bytes', 'memory.limit_in_bytes', 'memory.memsw.limit_in_bytes'];
    const now = Number(
      ifThere(() => readFileSync(join(group, used), 'utf8'), undefined) ??
        readFileSync(join(group, 'memory.current'), 'utf8'),
    );
    const most = String(now + spare.memoryBytes);
    const back = set([join(group, limit), join(group, 'memory.max')], most);
    const backWithSwap = ifThere(
      () => set([join(group, withSwap)], most),
      async () => {},
    );
    return async () => {
      await backWithSwap();
      await back();
    };
  },
});

/** A program on the host that takes nearly all memory, and would be killed first. */
const hostMemory: Lack = {
  name: 'memory of the host',
  async begin() {
    const hog = Bun.spawn(
      [
        'python3',
        '-c',
        `import time
open('/proc/self/oom_score_adj', 'w').write('1000')
def left(): return int([l for l in open('/proc/meminfo') if l.startswith('MemAvailable')][0].split()[1]) >> 10
kept = []
while left() > ${hostMemoryLeftMiB + 64}: kept.append(bytearray(b'x' * (64 << 20)))
print('taken', flush=True)
time.sleep(600)`,
      ],
      { stdout: 'pipe' },
    );
    const reader = hog.stdout.getReader();
    await reader.read();
    return async () => {
      hog.kill('SIGKILL');
      await hog.exited;
    };
  },
};

const room: Lack = {
  name: 'room on the disk',
  async begin({ ready }) {
    const folder = join(ready.dataDir, '../taken');
    mkdirSync(folder, { recursive: true });
    const file = join(folder, 'all');
    const { bavail, bsize } = statfsSync(folder);
    // What is left is less than anything needs.
    await tryCommand(['fallocate', '--length', String(bavail * bsize - MiB), file]);
    return async () => rmSync(file);
  },
};

/** No new ones: tracked connections stay. */
const connections: Lack = {
  name: 'tracked connections of the host',
  async begin() {
    const count = readFileSync('/proc/sys/net/netfilter/nf_conntrack_count', 'utf8').trim();
    return set(['/proc/sys/net/netfilter/nf_conntrack_max'], count);
  },
};

/** For everything that shares the helper's mounts. */
const loopDevices: Lack = {
  name: 'loop devices',
  async begin(platform) {
    const helpers = childrenOf(partOf(platform, 'node')).filter(pid => argumentsOf(pid)[0]?.endsWith('/helper'));
    const [inside] = helpers.flatMap(childrenOf);
    if (inside === undefined) throw new Error('there is no process in the mount namespace of the helper');
    const enter = ['nsenter', '--target', `${inside}`, '--mount'] as const;
    await tryCommand([...enter, 'mount', '--bind', '/dev/null', '/dev/loop-control']);
    return async () => void (await tryCommand([...enter, 'umount', '/dev/loop-control']).catch(() => {}));
  },
};

/** What is taken away, one after another. */
export const lacks: Lack[] = [
  descriptors('api'),
  descriptors('node'),
  descriptors('edge'),
  processes('node'),
  processes('api'),
  memory('node'),
  memory('api'),
  memory('edge'),
  hostMemory,
  room,
  connections,
  loopDevices,
];
