import { readSmallFile } from './small-file.ts';

/** The sandbox's own cgroup, version 1 or 2. Undefined members: no file shows them. */
type CgroupFacts = {
  /** Also undefined if there is no limit. */
  memoryLimitBytes: number | undefined;
  memoryUsedBytes: number | undefined;
  /** File cache, which the kernel gives up when memory is needed; part of the used memory. */
  memoryCacheBytes: number | undefined;
  /** Processor time used so far by everything in the sandbox. */
  cpuUsedMicroseconds: number | undefined;
  /** Processors that may be used at once, by the quota; fractions are possible. */
  cpuLimit: number | undefined;
};

const root = '/sys/fs/cgroup';
/** Version 1 writes "no limit" as a number near 2⁶³, rounded to pages. */
const unlimitedFrom = 2 ** 60;

/** Limits and use of the sandbox as its cgroup shows them, version 2 or 1. `at`: where it is mounted. */
export function readCgroup(at = root): CgroupFacts {
  const read = (name: string) => readSmallFile(`${at}/${name}`);
  return read('cgroup.controllers') === undefined ? readVersion1(read) : readVersion2(read);
}

/** Processes in the sandbox that the kernel has killed for lack of memory; 0 if no file shows it. */
export function readOutOfMemoryKills(at = root): number {
  const text = readSmallFile(`${at}/memory.events`) ?? readSmallFile(`${at}/memory/memory.oom_control`);
  return keyed(text, 'oom_kill') ?? 0;
}

type Read = (name: string) => string | undefined;

function readVersion2(read: Read): CgroupFacts {
  const [quota, period] = (read('cpu.max') ?? '').split(/\s/);
  return {
    memoryLimitBytes: numberOf(read('memory.max')),
    memoryUsedBytes: numberOf(read('memory.current')),
    memoryCacheBytes: cacheIn(read('memory.stat'), 'file', 'shmem'),
    cpuUsedMicroseconds: keyed(read('cpu.stat'), 'usage_usec'),
    cpuLimit: ratio(Number(quota), Number(period)),
  };
}

function readVersion1(read: Read): CgroupFacts {
  const limit = numberOf(read('memory/memory.limit_in_bytes'));
  const usedNanoseconds = numberOf(read('cpuacct/cpuacct.usage') ?? read('cpu,cpuacct/cpuacct.usage'));
  const cpu = read('cpu/cpu.cfs_period_us') === undefined ? 'cpu,cpuacct' : 'cpu';
  return {
    memoryLimitBytes: limit !== undefined && limit < unlimitedFrom ? limit : undefined,
    memoryUsedBytes: numberOf(read('memory/memory.usage_in_bytes')),
    memoryCacheBytes: cacheIn(read('memory/memory.stat'), 'total_cache', 'total_shmem'),
    cpuUsedMicroseconds: usedNanoseconds === undefined ? undefined : usedNanoseconds / 1000,
    cpuLimit: ratio(numberOf(read(`${cpu}/cpu.cfs_quota_us`)), numberOf(read(`${cpu}/cpu.cfs_period_us`))),
  };
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

function keyed(text: string | undefined, key: string): number | undefined {
  const [, value] = new RegExp(`^${key} (\\d+)$`, 'm').exec(text ?? '') ?? [];
  return value === undefined ? undefined : Number(value);
}

/** Files that exist only in memory (tmpfs) count as used memory: the kernel can't give them up. */
function cacheIn(text: string | undefined, files: string, inMemory: string): number | undefined {
  const bytes = keyed(text, files);
  return bytes === undefined ? undefined : bytes - (keyed(text, inMemory) ?? 0);
}

const ratio = (quota: number | undefined, period: number | undefined): number | undefined =>
  quota !== undefined && period !== undefined && quota > 0 && period > 0 ? quota / period : undefined;
