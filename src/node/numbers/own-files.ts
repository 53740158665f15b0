import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SandboxResources } from '../../protocol/node.ts';
import type { GroupMemory } from '../cgroup/group-memory.ts';
import { loadavg, type Load } from './load.ts';
import { meminfo } from './meminfo.ts';
import { cpuinfo, hostProcessors, online } from './processors.ts';
import { stat, type ProcessorTimes } from './stat.ts';

/**
 * The kernel's files that describe the whole machine, and the names of the files that a sandbox has in their place.
 * Those belong to the node and are mounted one by one: no program serves them, so none can hang a reader, be attacked
 * through them, or prevent a checkpoint.
 */
export const ownFiles = {
  '/proc/sys/kernel/random/boot_id': 'boot-id',
  '/proc/cpuinfo': 'cpuinfo',
  '/proc/meminfo': 'meminfo',
  '/proc/stat': 'stat',
  '/proc/loadavg': 'loadavg',
  '/proc/swaps': 'swaps',
  '/sys/devices/system/cpu/online': 'online',
} as const;

/** What a sandbox uses at a moment. */
export type Used = {
  memory: GroupMemory;
  times: ProcessorTimes;
  load: Load;
  tasks: number;
  /** When it booted, by its own clock, from which the ages of processes count. Seconds since 1970. */
  bootSeconds: number;
};

/** Writes the files of one sandbox. */
type OwnFiles = {
  /** Makes `directory` with every file, for a sandbox that has used nothing yet. */
  make(directory: string, facts: { bootId: string; resources: SandboxResources }): void;
  /** Updates what depends on a sandbox's size, when that changes. */
  resize(directory: string, resources: SandboxResources): void;
  /** Updates what changes while it runs. */
  refresh(directory: string, resources: SandboxResources, used: Used): void;
};

const nothing = { active: 0, inactive: 0 } as const;
const unused = {
  memory: {
    usedBytes: 0,
    anonBytes: 0,
    fileBytes: 0,
    sharedBytes: 0,
    mappedBytes: 0,
    dirtyBytes: 0,
    writebackBytes: 0,
    unevictableBytes: 0,
    anon: nothing,
    file: nothing,
    slabBytes: { reclaimable: 0, unreclaimable: 0 },
  },
  times: { userSeconds: 0, systemSeconds: 0, idleSeconds: 0 },
  load: [0, 0, 0] as const,
  tasks: 1,
} satisfies Omit<Used, 'bootSeconds'>;

/**
 * The files as they are on this host. The mount shows the file and not its name, so each file is written in place; and
 * with the same length, which CRIU compares if a program has it open. A reader at that very moment may see digits of
 * both versions.
 */
export function createOwnFiles(processors = hostProcessors()): OwnFiles {
  const countOf = ({ cpuCount }: SandboxResources) => Math.max(Math.min(cpuCount, processors.length), 1);
  const write = (directory: string, texts: Partial<Record<string, string>>, flag: string) => {
    for (const [name, text] of Object.entries(texts))
      if (text !== undefined) writeFileSync(join(directory, name), text, { flag, mode: 0o444 });
  };
  const moving = (resources: SandboxResources, { memory, times, load, tasks, bootSeconds }: Used) => ({
    meminfo: meminfo(resources.memoryMiB * 1024 ** 2, memory),
    stat: stat(times, { count: countOf(resources), bootSeconds, tasks }),
    loadavg: loadavg(load, tasks),
  });
  const sized = (resources: SandboxResources) => ({
    cpuinfo: cpuinfo(processors, countOf(resources)),
    online: online(countOf(resources)),
  });
  return {
    make(directory, { bootId, resources }) {
      rmSync(directory, { recursive: true, force: true });
      mkdirSync(directory, { mode: 0o711 });
      const fixed = { 'boot-id': `${bootId}\n`, swaps: 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n' };
      write(directory, { ...fixed, ...sized(resources), ...moving(resources, fresh()) }, 'wx');
    },
    resize(directory, resources) {
      // Shorter ones must not keep the end of longer ones.
      write(directory, { ...sized(resources), ...moving(resources, fresh()) }, 'w');
    },
    refresh: (directory, resources, used) => write(directory, moving(resources, used), 'r+'),
  };
}

const fresh = (): Used => ({ ...unused, bootSeconds: Math.floor(Date.now() / 1000) });
