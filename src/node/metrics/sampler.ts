import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error.ts';
import type { SandboxSample } from '../../protocol/node.ts';
import { pathInHelper } from '../native/helper.ts';
import type { Cgroups } from '../cgroup/cgroup.ts';
import type { NodeContext, Running } from '../context.ts';
import { slotOf } from '../layout.ts';
import { slotMountPoint } from '../sandbox/slot-disk.ts';
import { openSampleFile, type SampleFile } from './sample-file.ts';

export const sampleIntervalMs = 5_000;
/** After a sandbox was first seen: the processor's share needs two readings. */
const firstSampleMs = 1_000;
/** How often is looked for samples that are due: often, so that only a few are at a time and no request waits for them. */
const tickMs = 250;
/** Of a node's sandboxes, so many are sampled at most at a time: those that were adopted together spread themselves out. */
const tickShare = 1 / 16;
const tickSamplesMin = 8;
/** A disk that takes no samples is told of this often. */
const complainIntervalMs = 60_000;

/** The samples that the node takes of its sandboxes: what it reads is the kernel's, nothing is asked inside. */
export type Sampler = {
  /** The latest of a running sandbox; undefined when none was taken yet. */
  latest(sandboxId: string): SandboxSample | undefined;
  stop(): void;
};

type Sampled = {
  running: Running;
  nextAtMs: number;
  cpu: { atMs: number; us: number };
  file: SampleFile;
  latest?: SandboxSample;
};

/** Samples every running sandbox every 5 s. `recordsMax`: how many samples of each are kept at least. */
export function startSampler(node: NodeContext, cgroups: Cgroups, recordsMax: number): Sampler {
  const known = new Map<string, Sampled>();
  let complainedAtMs = -Infinity;

  const look = () => {
    const nowMs = performance.now();
    for (const [sandboxId, { running }] of known) if (node.running.get(sandboxId) !== running) known.delete(sandboxId);
    let left = Math.max(tickSamplesMin, Math.ceil(node.running.size * tickShare));
    for (const [sandboxId, running] of node.running) {
      const entry = known.get(sandboxId);
      if (entry && (entry.nextAtMs > nowMs || left-- <= 0)) continue;
      // A sandbox that ends at this moment has nothing to read any more.
      const problem = attempt(() => (entry ? take(entry, nowMs) : note(sandboxId, running, nowMs)));
      if (problem === undefined || running.removal || nowMs - complainedAtMs < complainIntervalMs) continue;
      complainedAtMs = nowMs;
      node.log.warn('what a sandbox uses could not be noted', { sandboxId, error: messageOf(problem) });
    }
  };

  const note = (sandboxId: string, running: Running, nowMs: number) => {
    const { cpuUs } = usageOf(running);
    const file = openSampleFile(samplesPath(node, sandboxId), recordsMax);
    known.set(sandboxId, { running, nextAtMs: nowMs + firstSampleMs, cpu: { atMs: nowMs, us: cpuUs }, file });
  };

  const take = (entry: Sampled, nowMs: number) => {
    entry.nextAtMs = nowMs + sampleIntervalMs;
    const { running, cpu } = entry;
    const { cpuCount, memoryMiB } = running.record.resources;
    const { cpuUs, memoryBytes, cacheBytes } = usageOf(running);
    const disk = statfsSync(diskOf(running));
    const memUsed = Math.max(memoryBytes - cacheBytes, 0);
    const share = (cpuUs - cpu.us) / 1000 / (nowMs - cpu.atMs) / cpuCount;
    entry.cpu = { atMs: nowMs, us: cpuUs };
    entry.latest = {
      atSeconds: Math.floor(Date.now() / 1000),
      cpuCount,
      cpuUsedPct: Math.round(Math.min(Math.max(share, 0), 1) * 10_000) / 100,
      memUsed,
      memTotal: memoryMiB * 1024 ** 2,
      memCache: Math.min(cacheBytes, memoryBytes),
      diskUsed: (disk.blocks - disk.bfree) * disk.bsize,
      diskTotal: disk.blocks * disk.bsize,
    };
    entry.file.append(entry.latest);
  };

  const slotOfRunning = ({ record }: Running) => slotOf(node.layout.installation, record.slot);
  const usageOf = (running: Running) => cgroups.usage(node.driver.cgroupPath(slotOfRunning(running)));
  // Disks are mounted in the helper's mount namespace. What `df` says inside is said by this file system too.
  const diskOf = (running: Running) => pathInHelper(node, slotMountPoint(node, slotOfRunning(running)));

  const timer = setInterval(look, tickMs);
  return { latest: sandboxId => known.get(sandboxId)?.latest, stop: () => clearInterval(timer) };
}

/** Where the samples of a sandbox are kept. */
export function samplesPath(node: NodeContext, sandboxId: string): string {
  return join(node.layout.metrics, sandboxId);
}

/** What `work` fails with, if it does. */
function attempt(work: () => void): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}
