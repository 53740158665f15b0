import { existsSync, mkdirSync, readdirSync, readlinkSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError, messageOf, systemCodeOf } from '../base/error.ts';
import { killIfThere } from '../base/if-there.ts';
import { readIfThere } from '../base/small-file.ts';

const hostRoot = '/sys/fs/cgroup';
/**
 * The controllers that limit a part; version 1 has a hierarchy for each. Processor time is not limited per part: then
 * each step of a request from one part to another would wait for the scheduler to come round between their groups. One
 * group carries the weight of all parts.
 */
const controllers = ['memory', 'pids'];
/**
 * Names of a supervisor's groups end in its process ID, after the PID namespace in which it has that ID: a supervisor
 * in another namespace, as in a container, can't see whether it is gone.
 */
const prefix = `atoll-parts-${/\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0]}-`;
/**
 * Weight of all parts together, ten times that of all sandboxes: they take little, and everybody waits for them. Each
 * of the kernel's threads, whose work for a sandbox does not count as the sandbox's (packets, its disk), has a
 * twentieth.
 */
export const platformWeight = { v1: 20_480, v2: 2000 } as const;
/** Killed processes hold their group until the kernel has freed their memory. */
const removal = { tries: 200, pauseMs: 10 } as const;
/** Killing takes a moment, which the watcher of the other parts can afford. */
const killing = { tries: 100, pauseMs: 1 } as const;

/** Limits of a process of the platform, including the programs that it starts. */
export type Budget = {
  /**
   * Includes the kernel's memory for files and sockets. Beyond the limit the kernel drops cached files, and then kills
   * a process.
   */
  memoryBytes: number;
  /** Processes and threads. */
  tasksMax: number;
  /** The part is one process. Anything else in its group after its end was left there by somebody who took it over. */
  isAlone?: boolean;
};

/** The name of a supervisor's groups. `pid`: in this process's namespace. */
export const groupsOf = (pid: number): string => `${prefix}${pid}`;

/** Control groups, one for each part. */
export type PartGroups<Name extends string> = AsyncDisposable & {
  /** A process that writes `0` into these files joins the group of a part. */
  joinFiles(part: Name): string[];
  /** Kills everything in the group of a part. */
  clear(part: Name): void;
};

/**
 * Makes control groups (version 1 or 2) with the budgets of the parts that this process watches, and removes the groups
 * of supervisors that are gone. Disposing removes the new groups. Errors: `unavailable`.
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
  /** Under version 1, one more group above all parts carries their weight. */
  const weighed = isV2 || !existsSync(join(root, 'cpu')) ? [] : [join(root, 'cpu', groupsOf(process.pid))];
  const write = isV2 ? writeV2 : writeV1;
  // Moving a single thread blocks nobody else (native/groups.c). Version 2 can do that only within one domain.
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

/** No groups: the limits of this process's container apply to all parts together. */
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

/** Makes controllers available to the groups below a group of version 2. */
function delegate(group: string, handedDown: readonly string[]): void {
  writeWhereThere(group, 'cgroup.subtree_control', handedDown.map(name => `+${name}`).join(' '));
}

/** `alone`: parts that can't survive their supervisor. */
function removeStale(hierarchy: string, alone: readonly string[]): void {
  for (const name of directoriesIn(hierarchy)) {
    if (!name.startsWith(prefix) || existsSync(`/proc/${name.slice(prefix.length)}`)) continue;
    for (const part of alone) clear(join(hierarchy, name, part));
    remove(join(hierarchy, name));
  }
}

/** Kills everything in a group, and what it starts meanwhile. */
function clear(group: string): void {
  const atOnce = join(group, 'cgroup.kill');
  if (existsSync(atOnce)) return writeFileSync(atOnce, '1');
  const processes = () => (readIfThere(join(group, 'cgroup.procs')) ?? '').split('\n').filter(Boolean).map(Number);
  for (let tries = 0, left = processes(); left.length > 0 && tries < killing.tries; tries++, left = processes()) {
    for (const pid of left) killIfThere(pid);
    Bun.sleepSync(killing.pauseMs);
  }
}

/** Removes a group and those below it. False where one of them is not empty yet. */
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

/** Skips a controller that the host does not have: it limits nothing. */
function writeWhereThere(group: string, file: string, value: string | number): void {
  if (existsSync(join(group, file))) writeFileSync(join(group, file), String(value));
}
