import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError, systemCodeOf } from '../../base/error.ts';
import { ifThere, killIfThere } from '../../base/if-there.ts';
import type { SandboxResources } from '../../protocol/node.ts';
import { filterDevices } from './device-filter.ts';
import { makeControlGroup } from './make-control-group.ts';
import { createPins, type Pins } from './pins.ts';
import { readings, type Readings } from './readings.ts';

const hostRoot = '/sys/fs/cgroup';
/** Scheduling period, microseconds: quota and period are in the proportion of the sandbox's cores. */
const cpuPeriodUs = 100_000;
/**
 * Weight of all sandboxes together: a tenth of the platform's (`src/supervisor/control-groups.ts`), and twice that of
 * each kernel thread: such a thread copies and sends for one of them while the others would wait. A process of the
 * host that is in no group weighs as much as such a thread, or shares that with its whole session if the kernel groups
 * sessions (autogroup, sched(7)); under version 2 the groups beside theirs weigh as much.
 */
const parentWeight = { v1: 2048, v2: 200 } as const;
/** Weight of one sandbox among the others. */
const usualWeight = { v1: 1024, v2: 100 } as const;
const hastenedWeight = { v1: 16_384, v2: 1600 } as const;
/** Weight of one that computes without end, if the kernel can't make it wait for all others (before Linux 5.15). */
const heavyWeight = { v1: 64, v2: 6 } as const;

/** How long killed processes may hold their group: the kernel writes out and frees what they had. */
const endingTimeoutMs = 10_000;
/** Pause between two attempts to remove a group, longer each time. */
const endingPollMs = { first: 1, max: 50 } as const;

/** The two interfaces of the kernel to control groups. Source: cgroups(7). */
type CgroupVersion = 'v1' | 'v2';

/** Processes and threads of one sandbox, however large it is. */
export const pidsMax = 4096;
const pidsPerMiB = 2;
const pidsMin = 512;

/**
 * Processes and threads that a sandbox of a size may have. One that only forks takes about 0.2 MiB for each: if its
 * memory can't hold them all, the kernel would not refuse them but kill them one by one, while all others, the agent
 * among them, wait in the kernel.
 */
export function pidsMaxOf({ memoryMiB }: Pick<SandboxResources, 'memoryMiB'>): number {
  return Math.min(pidsMax, Math.max(pidsMin, memoryMiB * pidsPerMiB));
}

/** The control groups of this host's sandboxes. Paths are relative to the root of each hierarchy, e.g. `/atoll0/s7`. */
export type Cgroups = Readings & {
  version: CgroupVersion;
  /** Makes a group with its limits and answers its directories. */
  make(path: string, resources: SandboxResources): string[];
  setLimits(path: string, resources: SandboxResources): void;
  /**
   * Makes the group above those of all sandboxes, with less weight than the platform itself: however much the
   * sandboxes compute, the platform answers, and can end them.
   */
  makeParent(path: string): void;
  /**
   * Makes the kernel refuse devices that no sandbox needs to everything below that group, whatever its /dev has.
   * Version 1 does so for each group. Throws `unavailable` if the kernel can't.
   */
  filterDevices(path: string): void;
  /** Makes a group that computes a lot come after others, or puts it back beside them. Fails if the group is gone. */
  weigh(path: string, isHeavy: boolean): void;
  /** Gives a group that is about to be killed all the processor time that it can get: dying takes work. */
  hasten(path: string): void;
  /**
   * Chooses which of the machine's processors run each group: as many as it may use, because its programs count them.
   * `setLimits` makes the choice.
   */
  pins: Pins;
  /** How many processes the kernel has killed there for lack of memory. */
  outOfMemoryKills(path: string): number;
  /** Processes in the group and below it. */
  processes(path: string): number[];
  /**
   * Whether no process is left in the group or below it, not even one that is ending; true also if the group is gone.
   */
  isEmpty(path: string): boolean;
  /**
   * Sends SIGKILL to every process there, even frozen ones. Under version 1 more may appear meanwhile: see `isEmpty`.
   */
  kill(path: string): void;
  /** Tells the kernel to stop every process of the group where it is. `isFrozen` says when they have stopped. */
  freeze(path: string): void;
  isFrozen(path: string): boolean;
  /** Lets the processes run on. A group that is gone or was never frozen is fine. */
  thaw(path: string): void;
  /**
   * Removes the group and those below it. Its processes must be gone or ending: the kernel takes its time, and nobody
   * else waits for it. Fails with `unavailable` if they do not end.
   */
  remove(path: string): Promise<void>;
  /** Names of the groups directly below `path`. */
  list(path: string): string[];
  /**
   * Limits how many bytes a second everything below the group may write to a block device (`7:112`); undefined: no
   * limit. Version 1 knows only the device of data that is written out later: there the limit counts for everybody.
   * Fails if the kernel has no such limits.
   */
  limitWrites(path: string, device: string, bytesPerSecond: number | undefined): void;
  /** The block devices with such a limit; none if the kernel has no such limits. */
  limitedDevices(path: string): string[];
};

/** Uses cgroup v2 if it has the controllers, else v1 (alone, or beside a v2 hierarchy without controllers). */
export function detectCgroups(root = hostRoot): Cgroups {
  const groups = existsSync(join(root, 'cgroup.controllers')) ? v2(root) : v1(root);
  return {
    ...groups,
    make(path, resources) {
      const directories = makeControlGroup(groups.version, path, root);
      groups.setLimits(path, resources);
      return directories;
    },
  };
}

function v2(root: string): Omit<Cgroups, 'make'> {
  const file = (path: string, name: string) => join(root, path, name);
  const pins = createPins(path => file(path, 'cpuset.cpus'));
  const read = readings.v2(file);
  return {
    version: 'v2',
    pins,
    setLimits(path, { cpuCount, memoryMiB }) {
      writeFileSync(file(path, 'memory.max'), String(memoryMiB * 1024 * 1024));
      writeIfThere(file(path, 'memory.swap.max'), '0');
      writeFileSync(file(path, 'cpu.max'), `${cpuCount * cpuPeriodUs} ${cpuPeriodUs}`);
      writeFileSync(file(path, 'pids.max'), String(pidsMaxOf({ memoryMiB })));
      pins.choose(path, cpuCount);
    },
    makeParent(path) {
      mkdirSync(join(root, path), { recursive: true });
      writeFileSync(join(root, 'cgroup.subtree_control'), '+cpu +memory +pids');
      // systemd takes a controller from the root, and so from this group, if no group below hands it down itself.
      for (const above of [root, join(root, path)])
        for (const controller of ['cpuset', 'io']) handDown(join(above, 'cgroup.subtree_control'), controller);
      writeFileSync(file(path, 'cpu.weight'), String(parentWeight.v2));
    },
    filterDevices: path => filterDevices(join(root, path)),
    weigh(path, isHeavy) {
      if (!letWait(file(path, 'cpu.idle'), isHeavy))
        writeFileSync(file(path, 'cpu.weight'), String((isHeavy ? heavyWeight : usualWeight).v2));
    },
    hasten(path) {
      writeIfThere(file(path, 'cpu.max'), 'max');
      letWait(file(path, 'cpu.idle'), false);
      writeIfThere(file(path, 'cpu.weight'), String(hastenedWeight.v2));
    },
    ...read,
    outOfMemoryKills: path => counter(file(path, 'memory.events'), 'oom_kill'),
    processes: path => processesBelow(join(root, path)),
    // Processes that are ending are not listed any more, but they still hold their group.
    isEmpty: path => counter(file(path, 'cgroup.events'), 'populated') === 0,
    kill: path => writeIfThere(file(path, 'cgroup.kill'), '1'),
    freeze: path => writeFileSync(file(path, 'cgroup.freeze'), '1'),
    isFrozen: path => counter(file(path, 'cgroup.events'), 'frozen') === 1,
    thaw: path => writeIfThere(file(path, 'cgroup.freeze'), '0'),
    remove(path) {
      pins.forget(path);
      read.forget(path);
      return removeTree(join(root, path));
    },
    list: path => directories(join(root, path)),
    limitWrites: (path, device, bytesPerSecond) =>
      writeFileSync(file(path, 'io.max'), `${device} wbps=${bytesPerSecond ?? 'max'}`),
    limitedDevices: path => devicesIn(file(path, 'io.max'), / wbps=\d/),
  };
}

function v1(root: string): Omit<Cgroups, 'make'> {
  const controllers = readdirSync(root).filter(
    name => existsSync(join(root, name, 'cgroup.procs')) && name !== 'unified',
  );
  const file = (controller: string, path: string, name: string) => join(root, controller, path, name);
  const pins = createPins(path => file('cpuset', path, 'cpuset.cpus'));
  const read = readings.v1(file);
  return {
    version: 'v1',
    pins,
    setLimits(path, { cpuCount, memoryMiB }) {
      const bytes = String(memoryMiB * 1024 * 1024);
      const memory = file('memory', path, 'memory.limit_in_bytes');
      const withSwap = file('memory', path, 'memory.memsw.limit_in_bytes');
      // The limit with swap must not be below the one without: the order of the two depends on the direction.
      if (!existsSync(withSwap)) writeFileSync(memory, bytes);
      else if (Number(readFileSync(memory, 'utf8')) > Number(bytes))
        for (const path of [memory, withSwap]) writeFileSync(path, bytes);
      else for (const path of [withSwap, memory]) writeFileSync(path, bytes);
      writeFileSync(file('cpu', path, 'cpu.cfs_quota_us'), String(cpuCount * cpuPeriodUs));
      writeFileSync(file('pids', path, 'pids.max'), String(pidsMaxOf({ memoryMiB })));
      pins.choose(path, cpuCount);
    },
    makeParent(path) {
      mkdirSync(join(root, 'cpu', path), { recursive: true });
      writeFileSync(file('cpu', path, 'cpu.shares'), String(parentWeight.v1));
    },
    filterDevices() {},
    weigh(path, isHeavy) {
      if (!letWait(file('cpu', path, 'cpu.idle'), isHeavy))
        writeFileSync(file('cpu', path, 'cpu.shares'), String((isHeavy ? heavyWeight : usualWeight).v1));
    },
    hasten(path) {
      writeIfThere(file('cpu', path, 'cpu.cfs_quota_us'), '-1');
      letWait(file('cpu', path, 'cpu.idle'), false);
      writeIfThere(file('cpu', path, 'cpu.shares'), String(hastenedWeight.v1));
    },
    ...read,
    outOfMemoryKills: path => counter(file('memory', path, 'memory.oom_control'), 'oom_kill'),
    processes: path => processesBelow(join(root, 'memory', path)),
    isEmpty: path => processesBelow(join(root, 'memory', path)).length === 0,
    kill(path) {
      for (const pid of processesBelow(join(root, 'memory', path))) killIfThere(pid);
      // A frozen process dies when it is thawed: SIGKILL is already pending, so it does nothing else.
      writeIfThere(file('freezer', path, 'freezer.state'), 'THAWED');
    },
    freeze: path => writeFileSync(file('freezer', path, 'freezer.state'), 'FROZEN'),
    // Reading the file also makes the kernel look whether all have stopped.
    isFrozen: path => readFileSync(file('freezer', path, 'freezer.state'), 'utf8') === 'FROZEN\n',
    thaw: path => writeIfThere(file('freezer', path, 'freezer.state'), 'THAWED'),
    async remove(path) {
      pins.forget(path);
      read.forget(path);
      for (const controller of controllers) await removeTree(join(root, controller, path));
    },
    list: path => [...new Set(controllers.flatMap(controller => directories(join(root, controller, path))))],
    limitWrites: (_, device, bytesPerSecond) =>
      writeFileSync(join(root, writeLimitsV1), `${device} ${bytesPerSecond ?? 0}`),
    limitedDevices: () => devicesIn(join(root, writeLimitsV1), / \d/),
  };
}

const writeLimitsV1 = 'blkio/blkio.throttle.write_bps_device';

/** The devices in a file with one line for each, whose lines match. */
function devicesIn(path: string, which: RegExp): string[] {
  const lines = ifThere(() => readFileSync(path, 'latin1'), '').split('\n');
  return lines.filter(line => which.test(line)).map(line => line.slice(0, line.indexOf(' ')));
}

/**
 * Makes a group run only when no group beside it wants to, and stop at once when one does; if they leave nothing, it
 * gets a 300th of their share. Back among them it has the usual weight. False: the kernel can't do that.
 */
function letWait(path: string, isLast: boolean): boolean {
  if (!existsSync(path)) return false;
  writeIfThere(path, isLast ? '1' : '0');
  return true;
}

/** The group may go at any moment. */
function writeIfThere(path: string, value: string): void {
  try {
    if (existsSync(path)) writeFileSync(path, value);
  } catch (error) {
    if (!['ENOENT', 'ENODEV'].includes(systemCodeOf(error))) throw error;
  }
}

/** If the group above does not have the controller, the groups below do without it. */
function handDown(file: string, controller: string): void {
  try {
    writeFileSync(file, `+${controller}`);
  } catch {
    // A host in a container may not pass the controller on.
  }
}

// A group that is gone has no count, no processes and no groups below it. A group that can't be read is different:
// taking it for empty would report sandboxes as ended whose processes still run.

function counter(path: string, name: string): number {
  const text = ifThere(() => readFileSync(path, 'utf8'), '');
  return Number(text.match(new RegExp(`^${name} (\\d+)$`, 'm'))?.[1] ?? 0);
}

function processesBelow(path: string): number[] {
  const text = ifThere(() => readFileSync(join(path, 'cgroup.procs'), 'utf8'), '');
  const own = text.split('\n').filter(Boolean).map(Number);
  return [...own, ...directories(path).flatMap(name => processesBelow(join(path, name)))];
}

/** Links of a directory without subdirectories: its name and its own `.`. The kernel's file systems count like this. */
const linksOfEmpty = 2;

function directories(path: string): string[] {
  // A group lists fifty files of its own, and few groups have one below them.
  if (statSync(path, { throwIfNoEntry: false })?.nlink === linksOfEmpty) return [];
  const entries = ifThere(() => readdirSync(path, { withFileTypes: true }), []);
  return entries.filter(entry => entry.isDirectory()).map(entry => entry.name);
}

async function removeTree(path: string): Promise<void> {
  const deadline = performance.now() + endingTimeoutMs;
  for (let waitMs: number = endingPollMs.first; ; waitMs = Math.min(waitMs * 2, endingPollMs.max)) {
    try {
      return await rmdir(path);
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT') return;
      // Busy because of groups below it, which most do not have, or because of processes that are ending.
      if (systemCodeOf(error) !== 'EBUSY' && systemCodeOf(error) !== 'ENOTEMPTY') throw error;
      const below = directories(path);
      for (const name of below) await removeTree(join(path, name));
      if (performance.now() > deadline) {
        const pids = processesBelow(path).slice(0, 10).join(' ');
        throw new AtollError(
          'unavailable',
          `a control group can't be removed: ${pids === '' ? 'it is in use' : 'its processes do not end'}`,
          { fields: { path, pids }, cause: error },
        );
      }
      if (below.length === 0) await Bun.sleep(waitMs);
    }
  }
}
