import { statfsSync } from 'node:fs';
import { readCgroup } from './cgroup.ts';

/** Processor use is the mean since an earlier reading that is at least this old. */
const cpuWindowMs = 1000;

/** The body of `GET /metrics`. Memory and disk in bytes, `_mib` in MiB, `ts` in seconds of Unix time. */
type Metrics = {
  ts: number;
  cpu_count: number;
  /** 0 to 100, over all processors of the sandbox. */
  cpu_used_pct: number;
  mem_total: number;
  mem_used: number;
  mem_cache: number;
  mem_total_mib: number;
  mem_used_mib: number;
  disk_used: number;
  disk_total: number;
};

type Reading = { atMs: number; cpuMicroseconds: number };

/** Reads the sandbox's own cgroup and root file system: never the host's numbers. */
export function createMetrics(): { read(limits: { memoryBytes: number; cpuCount: number }): Metrics } {
  let earlier: Reading = { atMs: performance.now(), cpuMicroseconds: readCgroup().cpuUsedMicroseconds ?? 0 };
  let latest = earlier;
  return {
    read(limits) {
      const cgroup = readCgroup();
      const now: Reading = { atMs: performance.now(), cpuMicroseconds: cgroup.cpuUsedMicroseconds ?? 0 };
      if (now.atMs - latest.atMs >= cpuWindowMs) [earlier, latest] = [latest, now];
      const processors = cgroup.cpuLimit ?? (limits.cpuCount || 1);
      const memoryTotal = cgroup.memoryLimitBytes ?? limits.memoryBytes;
      const cache = cgroup.memoryCacheBytes ?? 0;
      const memoryUsed = Math.max((cgroup.memoryUsedBytes ?? 0) - cache, 0);
      const disk = statfsSync('/');
      return {
        ts: Math.floor(Date.now() / 1000),
        cpu_count: Math.ceil(processors),
        cpu_used_pct: usedPercent(earlier, now, processors),
        mem_total: memoryTotal,
        mem_used: memoryUsed,
        mem_cache: cache,
        mem_total_mib: Math.floor(memoryTotal / 2 ** 20),
        mem_used_mib: Math.floor(memoryUsed / 2 ** 20),
        disk_used: (disk.blocks - disk.bfree) * disk.bsize,
        disk_total: disk.blocks * disk.bsize,
      };
    },
  };
}

function usedPercent(from: Reading, to: Reading, processors: number): number {
  const passedMs = Math.max(to.atMs - from.atMs, 1);
  const percent = ((to.cpuMicroseconds - from.cpuMicroseconds) / 1000 / passedMs / processors) * 100;
  return Math.round(Math.min(Math.max(percent, 0), 100) * 100) / 100;
}
