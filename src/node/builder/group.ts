import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ifThere, killIfThere } from '../../base/if-there.ts';
import { randomHex } from '../../base/crypto/secret.ts';

const hostRoot = '/sys/fs/cgroup';
/** The controllers that bound a builder, for version 1, which has a hierarchy for each. */
const controllers = ['memory', 'pids', 'cpu'];
/** Threads of one builder; the runtime has about ten. */
const threadsMax = 64;
/** Share of the memory of all builders that the builders of one team may take together. */
const teamShare = 3 / 4;
const removalTries = 200;
const removalPauseMs = 5;

/**
 * The control groups of a node's builders, one for each process. Memory has a limit for each builder, for those of one
 * team and for all together. All builders together have the processor weight of one sandbox, and each team has the
 * same share of that.
 */
type BuilderGroups = {
  /** `team`: the team that the builder works for; without one it is the platform's own, beside the groups of teams. */
  create(memoryMiB: number, team?: string): BuilderGroup;
  /** Removes what is left. No builder may run any more. */
  remove(): Promise<void>;
};

/** The control group of one builder. */
export type BuilderGroup = {
  /** Its directories: a process that is born in them is in the group. */
  directories: string[];
  /** Whether the kernel has ended the process for lack of memory. */
  wasOutOfMemory(): boolean;
  /** Kills what is in it and removes it. */
  remove(): Promise<void>;
};

/** `topName`: a directory in the root of each hierarchy, used by nobody else. Removes what a crash has left there. */
export function createBuilderGroups(topName: string, memoryMiBMax: number, root = hostRoot): BuilderGroups {
  const isV2 = existsSync(join(root, 'cgroup.controllers'));
  const hierarchies = isV2
    ? [root]
    : controllers.map(controller => join(root, controller)).filter(path => existsSync(path));
  const top = (hierarchy: string) => join(hierarchy, topName);

  const make = (path: string, memoryMiB: number) => {
    mkdirSync(path, { recursive: true });
    const bytes = String(memoryMiB * 1024 * 1024);
    writeWhereThere(join(path, isV2 ? 'memory.max' : 'memory.limit_in_bytes'), bytes);
    writeWhereThere(join(path, isV2 ? 'memory.swap.max' : 'memory.memsw.limit_in_bytes'), isV2 ? '0' : bytes);
  };
  const delegate = (path: string) => {
    if (isV2)
      writeWhereThere(join(path, 'cgroup.subtree_control'), controllers.map(controller => `+${controller}`).join(' '));
  };
  if (isV2) delegate(root);
  for (const hierarchy of hierarchies) {
    make(top(hierarchy), memoryMiBMax);
    delegate(top(hierarchy));
  }

  const groupAt = (paths: string[]): BuilderGroup => ({
    directories: paths,
    wasOutOfMemory: () => paths.some(path => counts(join(path, isV2 ? 'memory.events' : 'memory.oom_control'))),
    remove: async () => void (await Promise.all(paths.map(removeGroup))),
  });
  const leftovers = hierarchies.flatMap(hierarchy => groupsBelow(top(hierarchy)));
  const cleaned = groupAt(leftovers).remove();
  const teams = createTeamGroups(name => {
    const paths = hierarchies.map(hierarchy => join(top(hierarchy), name));
    for (const path of paths) {
      make(path, Math.floor(memoryMiBMax * teamShare));
      delegate(path);
    }
    return { paths, remove: groupAt(paths).remove };
  });

  return {
    create(memoryMiB, team) {
      const held = team === undefined ? undefined : teams.hold(team);
      // A new name, never that of a group that is being removed.
      const name = `b${randomHex(8)}`;
      const paths = (held?.paths ?? hierarchies.map(top)).map(parent => join(parent, name));
      for (const path of paths) {
        make(path, memoryMiB);
        writeWhereThere(join(path, 'pids.max'), String(threadsMax));
      }
      const group = groupAt(paths);
      return { ...group, remove: () => group.remove().finally(() => held?.release()) };
    },
    async remove() {
      await cleaned;
      await teams.settled();
      await Promise.all(hierarchies.map(hierarchy => removeGroup(top(hierarchy))));
    },
  };
}

type TeamGroup = { paths: string[]; remove(): Promise<void> };

/** The groups of teams, each there while a builder works for the team. `make` makes the group of a name. */
function createTeamGroups(make: (name: string) => TeamGroup): {
  hold(team: string): { paths: string[]; release(): void };
  /** Resolves when the groups that nobody needs any more are removed. */
  settled(): Promise<void>;
} {
  const known = new Map<string, TeamGroup & { users: number }>();
  const removals = new Set<Promise<void>>();
  return {
    hold(team) {
      // A new name, never that of a group that is being removed.
      const group = known.get(team) ?? { ...make(`t${randomHex(8)}`), users: 0 };
      known.set(team, group);
      group.users++;
      let isHeld = true;
      const release = () => {
        if (!isHeld) return;
        isHeld = false;
        if (--group.users > 0) return;
        known.delete(team);
        const removal = group.remove().finally(() => removals.delete(removal));
        removals.add(removal);
      };
      return { paths: group.paths, release };
    },
    settled: async () => void (await Promise.all(removals)),
  };
}

/** The groups below a group, the innermost first. */
function groupsBelow(path: string): string[] {
  return directoriesIn(path).flatMap(name => [...groupsBelow(join(path, name)), join(path, name)]);
}

async function removeGroup(path: string): Promise<void> {
  for (let tries = 0; tries < removalTries; tries++) {
    for (const pid of processesOf(path)) killIfThere(pid);
    try {
      await rmdir(path);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
      await Bun.sleep(removalPauseMs);
    }
  }
}

function counts(path: string): boolean {
  return readOr(path)
    .split('\n')
    .some(line => line.startsWith('oom_kill ') && line !== 'oom_kill 0');
}

function processesOf(path: string): number[] {
  return readOr(join(path, 'cgroup.procs')).split('\n').filter(Boolean).map(Number);
}

function directoriesIn(path: string): string[] {
  const entries = ifThere(() => readdirSync(path, { withFileTypes: true }), []);
  return entries.filter(entry => entry.isDirectory()).map(entry => entry.name);
}

function readOr(path: string): string {
  return ifThere(() => readFileSync(path, 'utf8'), '');
}

/** Writes a setting if the file is there: hosts differ in what their kernels count. */
function writeWhereThere(path: string, value: string): void {
  if (existsSync(path)) writeFileSync(path, value);
}
