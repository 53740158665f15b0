import { readFileSync } from 'node:fs';
import { ifThere } from '../../base/if-there.ts';
import { groupMemory, type GroupMemory } from './group-memory.ts';
import { KeptFiles } from './kept-files.ts';
import { keyed } from './keyed.ts';

/** USER_HZ, the unit in which version 1 counts processor time (time(7)). */
const ticksPerSecond = 100;

/** What the kernel reports about a group, under either version. */
export type Readings = {
  /**
   * Bytes that the group's processes use, including files that the kernel caches for them. Fails if the group is gone.
   */
  memoryUsed(path: string): number;
  /** Processor time so far, microseconds; read for every group each second. Fails if the group is gone. */
  cpuUs(path: string): number;
  /**
   * The part of `memoryUsed` that is cached files, without files that exist only in memory (tmpfs, and everything in a
   * gVisor sandbox): those the kernel can't give up. Fails if the group is gone.
   */
  cacheBytes(path: string): number;
  /** What the group's memory is made of. Fails if the group is gone. */
  memory(path: string): GroupMemory;
  /** Processor time that the group has used in programs and in the kernel. Fails if the group is gone. */
  cpuTimes(path: string): { userSeconds: number; systemSeconds: number };
  /** Processes and threads of the group; 0 if it is gone. */
  tasks(path: string): number;
  /** Closes files that are kept open of a group that is about to be removed. */
  forget(path: string): void;
};

const textOf = (path: string) => readFileSync(path, 'latin1');

/** The readings of each version; `file` finds a file of a group. */
export const readings = {
  v2: (file: (path: string, name: string) => string, kept = new KeptFiles()): Readings => ({
    cpuUs: path => keyed(kept.read(file(path, 'cpu.stat')), 'usage_usec'),
    memoryUsed: path => Number(kept.read(file(path, 'memory.current'))),
    cacheBytes(path) {
      const memory = textOf(file(path, 'memory.stat'));
      return keyed(memory, 'file') - keyed(memory, 'shmem');
    },
    memory: path => groupMemory(textOf(file(path, 'memory.stat')), textOf(file(path, 'memory.current'))),
    cpuTimes(path) {
      const text = textOf(file(path, 'cpu.stat'));
      return { userSeconds: keyed(text, 'user_usec') / 1e6, systemSeconds: keyed(text, 'system_usec') / 1e6 };
    },
    tasks: path => numberIn(file(path, 'pids.current')),
    forget(path) {
      kept.forget(file(path, 'cpu.stat'));
      kept.forget(file(path, 'memory.current'));
    },
  }),

  v1: (file: (controller: string, path: string, name: string) => string, kept = new KeptFiles()): Readings => ({
    cpuUs: path => Number(kept.read(file('cpuacct', path, 'cpuacct.usage'))) / 1000,
    memoryUsed: path => Number(kept.read(file('memory', path, 'memory.usage_in_bytes'))),
    cacheBytes(path) {
      const memory = textOf(file('memory', path, 'memory.stat'));
      return keyed(memory, 'total_cache') - keyed(memory, 'total_shmem');
    },
    memory: path =>
      groupMemory(textOf(file('memory', path, 'memory.stat')), textOf(file('memory', path, 'memory.usage_in_bytes'))),
    cpuTimes(path) {
      const text = textOf(file('cpuacct', path, 'cpuacct.stat'));
      return {
        userSeconds: keyed(text, 'user') / ticksPerSecond,
        systemSeconds: keyed(text, 'system') / ticksPerSecond,
      };
    },
    tasks: path => numberIn(file('pids', path, 'pids.current')),
    forget(path) {
      kept.forget(file('cpuacct', path, 'cpuacct.usage'));
      kept.forget(file('memory', path, 'memory.usage_in_bytes'));
    },
  }),
};

function numberIn(path: string): number {
  return Number(ifThere(() => readFileSync(path, 'latin1'), 0)); // a group that is gone has none
}
