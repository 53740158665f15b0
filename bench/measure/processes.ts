import { readFileSync, readdirSync } from 'node:fs';

const ticksPerSecond = 100; // USER_HZ, fixed by the kernel's interface

/** CPU time that a process has used, ms. Source: proc(5), stat fields 14 and 15. */
export function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond;
}

/**
 * CPU time that the cgroup of a process has used, ms: of all present and past processes in it. Sources: cgroups(7),
 * cpuacct.usage of version 1 and cpu.stat of version 2.
 */
export function groupCpuMsOf(pid: number): number {
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').split('\n');
  const version1 = /^\d+:(?:cpu,)?cpuacct(?:,cpu)?:(.*)$/;
  const old = lines.flatMap(line => version1.exec(line)?.[1] ?? [])[0];
  if (old !== undefined) return Number(readFileSync(`/sys/fs/cgroup/cpuacct${old}/cpuacct.usage`, 'utf8')) / 1e6;
  const path = lines.find(line => line.startsWith('0::'))?.slice(3);
  return Number(/^usage_usec (\d+)$/m.exec(readFileSync(`/sys/fs/cgroup${path}/cpu.stat`, 'utf8'))?.[1]) / 1e3;
}

/** Proportional set size of a process, MiB: a shared page is divided by the number of processes that share it. */
export function pssMiBOf(pid: number): number {
  return Number(/^Pss: +(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1024;
}

/**
 * The platform's own processes: `pid` and its descendants. Those of sandboxes descend from its helper, and live in the
 * sandboxes' cgroups.
 */
export function platformOf(pid: number): number[] {
  return familyOf(pid).filter(member => {
    try {
      return !/\/atoll\d+\//.test(readFileSync(`/proc/${member}/cgroup`, 'utf8'));
    } catch {
      return false; // ended meanwhile
    }
  });
}

/** The sum of `figure` over processes; one that ends meanwhile counts as zero. */
export function sumOf(pids: readonly number[], figure: (pid: number) => number): number {
  return pids.reduce((sum, pid) => {
    try {
      return sum + figure(pid);
    } catch {
      return sum; // ended meanwhile
    }
  }, 0);
}

/**
 * Answers a function that tells how much CPU time the processes have used since now, ms. A process that has ended by
 * then counts as zero.
 */
export function cpuMsFromNow(pids: readonly number[]): () => number {
  const before = new Map(pids.map(pid => [pid, sumOf([pid], cpuMsOf)]));
  return () => sumOf(pids, pid => cpuMsOf(pid) - (before.get(pid) ?? 0));
}

/** Memory that the host can still provide, MiB. */
export function availableMiB(): number {
  return Number(/^MemAvailable: +(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0) / 1024;
}

/** `pid` and all its descendants. */
export function familyOf(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) if (/^\d+$/.test(name)) parents.set(Number(name), parentOf(Number(name)));
  const family = [pid];
  for (let index = 0; index < family.length; index++)
    for (const [child, parent] of parents) if (parent === family[index]) family.push(child);
  return family;
}

function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return 0; // ended meanwhile
  }
}
