import { existsSync, mkdirSync, readdirSync, readlinkSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError, messageOf, systemCodeOf } from '../base/error.ts';
import { killIfThere } from '../base/if-there.ts';
import { readIfThere } from '../base/small-file.ts';

const hostRoot = '/sys/fs/cgroup';
/**
 * The controllers that bound a part; version 1 has a hierarchy for each. Processor time is none of them: what one part
 * asks of another would wait for the scheduler to come round between their groups, at each of the steps of a request.
 * There is one group for the weight of all of them.
 */
const controllers = ['memory', 'pids'];
/**
 * Groups of a supervisor have its process ID behind this, and the namespace in which that is its ID: who lives in
 * another one, as in a container, can't see whether it is gone.
 */
const prefix = `atoll-parts-${/\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0]}-`;
/**
 * Weight of all parts together, ten times that of all sandboxes: they take little, and everybody waits for them. Each
 * of the kernel's threads, which do for a sandbox what is not counted as its own (packets, its disk), has a twentieth.
 */
export const platformWeight = { v1: 20_480, v2: 2000 } as const;
/** Processes that were killed hold their group until the kernel has freed what they had. */
const removal = { tries: 200, pauseMs: 10 } as const;
/** What is killed takes a moment, which whoever watches the others can wait. */
const killing = { tries: 100, pauseMs: 1 } as const;

/** Limits of a process of the platform and the programs that it starts. */
export type Budget = {
  /** Includes the kernel's memory for files and sockets. Beyond it the kernel drops files, and then kills a process. */
  memoryBytes: number;
  /** Processes and threads. */
  tasksMax: number;
  /** It is one process, and what else is in its group when that has ended was left there by whoever took it over. */
  isAlone?: boolean;
};

/** The name of a supervisor's groups. `pid`: of this process's namespace. */
export const groupsOf = (pid: number): string => `${prefix}${pid}`;

/** Control groups, one for each part. */
export type PartGroups<Name extends string> = AsyncDisposable & {
  /** A process that writes `0` into these files is in the group of a part. */
  joinFiles(part: Name): string[];
  /** Kills whatever is in the group of a part. */
  clear(part: Name): void;
};

/**
 * Makes control groups (version 1 or 2) with the budgets of the parts that this process watches, and removes those of
 * supervisors that are gone. Disposing of them removes them. Errors: `unavailable`.
 */
export function makePartGroups<Name extends string>(
  budgets: Readonly<Record<Name, Budget>>,
  root = hostRoot,
): PartGroups<Name> {
  const isV2 = existsSync(join(root, 'cgroup.controllers'));
  const hierarchies = isV2 ? [root] : controllers.map(name => join(root, name)).filter(path => existsSync(path));
  const alone = Object.entries<Budget>(budgets).flatMap(([part, { isAlone }]) => (isAlone ? [part] : []));
  for (const hierarchy of isV2 ? hierarchies : [...hierarchies, join(root, 'cpu')]) removeStale(hierarchy, alone);
  const tops = hierarchies.map(hierarchy => join(hierarchy, groupsOf(process.pid)));
  /** Under version 1 one more group is above all parts, for their weight. */
  const weighed = isV2 || !existsSync(join(root, 'cpu')) ? [] : [join(root, 'cpu', groupsOf(process.pid))];
  const write = isV2 ? writeV2 : writeV1;
  // What moves a single thread holds up nobody else (native/groups.c). Version 2 has that within one domain only.
  const joinFile = isV2 ? 'cgroup.procs' : 'tasks';
  try {
    if (isV2) delegate(root, [...controllers, 'cpu']);
    for (const top of tops) {
      mkdirSync(top, { recursive: true });
      if (isV2) delegate(top, controllers);
      writeWhereThere(top, 'cpu.weight', platformWeight.v2);
      for (const [part, budget] of Object.entries<Budget>(budgets)) {
        mkdirSync(join(top, part), { recursive: true });
        write(join(top, part), budget);
      }
    }
    for (const top of weighed) {
      mkdirSync(top, { recursive: true });
      writeWhereThere(top, 'cpu.shares', platformWeight.v1);
    }
  } catch (cause) {
    throw new AtollError(
      'unavailable',
      `The control groups of the platform's processes can't be made in ${root}: ${messageOf(cause)}`,
      { cause },
    );
  }
  return {
    joinFiles: part => [...tops.map(top => join(top, part)), ...weighed].map(group => join(group, joinFile)),
    clear: part => tops.forEach(top => clear(join(top, part))),
    async [Symbol.asyncDispose]() {
      for (const top of [...tops, ...weighed])
        for (let tries = 0; !remove(top) && tries < removal.tries; tries++) await Bun.sleep(removal.pauseMs);
    },
  };
}

/** No groups: what bounds the container of this process bounds its parts together. */
export const noPartGroups: PartGroups<string> = {
  joinFiles: () => [],
  clear() {},
  [Symbol.asyncDispose]: async () => {},
};

function writeV2(group: string, { memoryBytes, tasksMax }: Budget): void {
  writeWhereThere(group, 'memory.max', memoryBytes);
  writeWhereThere(group, 'memory.swap.max', 0);
  writeWhereThere(group, 'pids.max', tasksMax);
}

function writeV1(group: string, { memoryBytes, tasksMax }: Budget): void {
  writeWhereThere(group, 'memory.limit_in_bytes', memoryBytes);
  writeWhereThere(group, 'memory.memsw.limit_in_bytes', memoryBytes);
  writeWhereThere(group, 'pids.max', tasksMax);
}

/** Hands controllers down to the groups below one of version 2. */
function delegate(group: string, handedDown: readonly string[]): void {
  writeWhereThere(group, 'cgroup.subtree_control', handedDown.map(name => `+${name}`).join(' '));
}

/** `alone`: parts of which none runs on without its supervisor. */
function removeStale(hierarchy: string, alone: readonly string[]): void {
  for (const name of directoriesIn(hierarchy)) {
    if (!name.startsWith(prefix) || existsSync(`/proc/${name.slice(prefix.length)}`)) continue;
    for (const part of alone) clear(join(hierarchy, name, part));
    remove(join(hierarchy, name));
  }
}

/** Kills all that is in a group, and what it starts meanwhile. */
function clear(group: string): void {
  const atOnce = join(group, 'cgroup.kill');
  if (existsSync(atOnce)) return writeFileSync(atOnce, '1');
  const processes = () => (readIfThere(join(group, 'cgroup.procs')) ?? '').split('\n').filter(Boolean).map(Number);
  for (let tries = 0, left = processes(); left.length > 0 && tries < killing.tries; tries++, left = processes()) {
    for (const pid of left) killIfThere(pid);
    Bun.sleepSync(killing.pauseMs);
  }
}

/** Removes a group and those below it. False where something is still in one of them. */
function remove(group: string): boolean {
  try {
    for (const below of directoriesIn(group)) rmdirSync(join(group, below));
    rmdirSync(group);
    return true;
  } catch (error) {
    return systemCodeOf(error) === 'ENOENT';
  }
}

function directoriesIn(path: string): string[] {
  if (!existsSync(path)) return [];
  return readdirSync(path, { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(entry => entry.name);
}

/** A controller that the host does not have bounds nothing. */
function writeWhereThere(group: string, file: string, value: string | number): void {
  if (existsSync(join(group, file))) writeFileSync(join(group, file), String(value));
}
