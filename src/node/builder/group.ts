import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ifThere, killIfThere } from '../../base/if-there.ts';
import { randomHex } from '../../base/crypto/secret.ts';

const hostRoot = '/sys/fs/cgroup';
/** The controllers that bound a builder, where version 1 has a hierarchy for each. */
const controllers = ['memory', 'pids', 'cpu'];
/** Threads of one builder; the runtime has about ten. */
const threadsMax = 64;
const removalTries = 200;
const removalPauseMs = 5;

/**
 * The control groups of a node's builders, one for each process: with the limit of memory for each and for all
 * together. Of the processors, all together have the weight of one sandbox.
 */
type BuilderGroups = {
  create(memoryMiB: number): BuilderGroup;
  /** Removes what is left. No builder may run any more. */
  remove(): Promise<void>;
};

/** The control group of one builder. */
export type BuilderGroup = {
  /** A process that writes `0` into these files is in it. */
  joinFiles: string[];
  /** Whether the kernel has ended the process for lack of memory. */
  wasOutOfMemory(): boolean;
  /** Kills what is in it and removes it. */
  remove(): Promise<void>;
};

/** `topName`: a directory of the root of each hierarchy, and nobody else's. What a crash has left there is removed. */
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
    joinFiles: paths.map(path => join(path, 'cgroup.procs')),
    wasOutOfMemory: () => paths.some(path => counts(join(path, isV2 ? 'memory.events' : 'memory.oom_control'))),
    remove: async () => void (await Promise.all(paths.map(removeGroup))),
  });
  const leftovers = hierarchies.flatMap(hierarchy =>
    directoriesIn(top(hierarchy)).map(below => join(top(hierarchy), below)),
  );
  const cleaned = groupAt(leftovers).remove();

  return {
    create(memoryMiB) {
      // Never the name of one that is being removed.
      const name = `b${randomHex(8)}`;
      const paths = hierarchies.map(hierarchy => join(top(hierarchy), name));
      for (const path of paths) {
        make(path, memoryMiB);
        writeWhereThere(join(path, 'pids.max'), String(threadsMax));
      }
      return groupAt(paths);
    },
    async remove() {
      await cleaned;
      await Promise.all(hierarchies.map(hierarchy => removeGroup(top(hierarchy))));
    },
  };
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

/** Hosts differ in what their kernels count. */
function writeWhereThere(path: string, value: string): void {
  if (existsSync(path)) writeFileSync(path, value);
}
