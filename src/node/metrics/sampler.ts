import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error.ts';
import { keepOnly } from '../../base/keep-only.ts';
import type { SandboxSample } from '../../protocol/node-usage.ts';
import { pathInHelper, type Helper } from '../native/helper.ts';
import type { Cgroups } from '../cgroup/cgroup.ts';
import type { Layout } from '../layout.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { RunningRecord } from '../sandbox/records/record.ts';
import type { Processes } from '../sandbox/slot/processes.ts';
import { slotMountPoint } from '../sandbox/slot/slot-disk.ts';
import { openSampleFile, type SampleFile } from './sample-file.ts';

/** Time between two samples of a sandbox. */
export const sampleIntervalMs = 5_000;
/** Time from the first look at a sandbox to its first sample: the processor's share needs two readings. */
const firstSampleMs = 1_000;
/**
 * How often the sampler looks for samples that are due: often, so that few are due at a time and no request waits for
 * them.
 */
const tickMs = 250;
/** The largest share of a node's sandboxes that one tick samples: sandboxes that were adopted together spread out. */
const tickShare = 1 / 16;
const tickSamplesMin = 8;
/** How often a disk that takes no samples is reported. */
const complainIntervalMs = 60_000;

/** The node's samples of its sandboxes: it reads only the kernel's counters and asks nothing inside a sandbox. */
type Sampler = {
  /** The latest sample of a running sandbox; undefined if none was taken yet. */
  latest(sandboxId: string): SandboxSample | undefined;
  stop(): void;
};

/** A sandbox that is sampled: its processes stay the same for a whole execution. */
type SampledSandbox = {
  sandboxId: string;
  record: Pick<RunningRecord, 'executionId' | 'resources'>;
  processes: Pick<Processes, 'slot' | 'driver'>;
};

/** What taking samples needs. */
export type SamplerParts = {
  /** The sandboxes that run now. */
  sandboxes: { running(): SampledSandbox[] };
  cgroups: Pick<Cgroups, 'cpuUs' | 'memoryUsed' | 'cacheBytes'>;
  layout: Pick<Layout, 'metrics' | 'mounts'>;
  helper: Pick<Helper, 'mountsPid'>;
  log: Log;
};

type Sampled = {
  sandbox: SampledSandbox;
  nextAtMs: number;
  cpu: { atMs: number; us: number };
  /** As the kernel reported it for the latest sample. */
  memoryBytes: number;
  file: SampleFile;
  latest?: SandboxSample;
};

/** Samples every running sandbox every 5 s. `recordsMax`: how many samples of each are kept at least. */
export function startSampler(parts: SamplerParts, recordsMax: number): Sampler {
  const { sandboxes, cgroups, layout, log } = parts;
  const known = new Map<string, Sampled>();
  let complainedAtMs = -Infinity;

  const look = () => {
    const nowMs = performance.now();
    const running = sandboxes.running();
    let left = Math.max(tickSamplesMin, Math.ceil(running.length * tickShare));
    for (const sandbox of running) {
      const entry = entryOf(sandbox);
      if (entry && (entry.nextAtMs > nowMs || left-- <= 0)) continue;
      // A sandbox that is ending at this moment has nothing to read any more.
      const problem = attempt(() => (entry ? take(entry, nowMs) : begin(sandbox, nowMs)));
      if (problem === undefined || nowMs - complainedAtMs < complainIntervalMs) continue;
      complainedAtMs = nowMs;
      const { sandboxId } = sandbox;
      log.warn('what a sandbox uses could not be recorded', { sandboxId, error: messageOf(problem) });
    }
    keepOnly(
      known,
      running.map(({ sandboxId }) => sandboxId),
    );
  };

  const entryOf = ({ sandboxId, record }: SampledSandbox) => {
    const entry = known.get(sandboxId);
    if (entry?.sandbox.record.executionId === record.executionId) return entry;
    known.delete(sandboxId);
    return undefined;
  };

  const begin = (sandbox: SampledSandbox, nowMs: number) => {
    const cpu = { atMs: nowMs, us: cgroups.cpuUs(groupOf(sandbox)) };
    const file = openSampleFile(samplesPath(layout, sandbox.sandboxId), recordsMax);
    known.set(sandbox.sandboxId, { sandbox, nextAtMs: nowMs + firstSampleMs, cpu, memoryBytes: 0, file });
  };

  const take = (entry: Sampled, nowMs: number) => {
    entry.nextAtMs = nowMs + sampleIntervalMs;
    const path = groupOf(entry.sandbox);
    const [us, memoryBytes] = [cgroups.cpuUs(path), cgroups.memoryUsed(path)];
    const share = (us - entry.cpu.us) / 1000 / (nowMs - entry.cpu.atMs) / entry.sandbox.record.resources.cpuCount;
    // Most are idle: if nothing ran and the kernel reclaimed nothing, everything is unchanged.
    const asBefore = us === entry.cpu.us && memoryBytes === entry.memoryBytes ? entry.latest : undefined;
    entry.latest = {
      ...(asBefore ?? contentsOf(entry.sandbox, memoryBytes)),
      atSeconds: Math.floor(Date.now() / 1000),
      cpuUsedPct: Math.round(Math.min(Math.max(share, 0), 1) * 10_000) / 100,
    };
    entry.cpu = { atMs: nowMs, us };
    entry.memoryBytes = memoryBytes;
    entry.file.append(entry.latest);
  };

  /** How much memory and disk a sandbox has and uses. */
  const contentsOf = (sandbox: SampledSandbox, memoryBytes: number) => {
    const { cpuCount, memoryMiB } = sandbox.record.resources;
    const cacheBytes = cgroups.cacheBytes(groupOf(sandbox));
    const disk = statfsSync(diskOf(sandbox));
    return {
      cpuCount,
      memUsed: Math.max(memoryBytes - cacheBytes, 0),
      memTotal: memoryMiB * 1024 ** 2,
      memCache: Math.min(cacheBytes, memoryBytes),
      diskUsed: (disk.blocks - disk.bfree) * disk.bsize,
      diskTotal: disk.blocks * disk.bsize,
    };
  };

  const groupOf = ({ processes: { driver, slot } }: SampledSandbox) => driver.cgroupPath(slot);
  // Disks are mounted in the helper's mount namespace. This file system says the same as `df` inside.
  const diskOf = ({ processes: { slot } }: SampledSandbox) => pathInHelper(parts, slotMountPoint(layout, slot));

  const timer = setInterval(look, tickMs);
  return { latest: sandboxId => known.get(sandboxId)?.latest, stop: () => clearInterval(timer) };
}

/** Where the samples of a sandbox are kept. */
export function samplesPath({ metrics }: Pick<Layout, 'metrics'>, sandboxId: string): string {
  return join(metrics, sandboxId);
}

/** The error that `work` throws, if it does. */
function attempt(work: () => void): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}
