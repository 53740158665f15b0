import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error.ts';
import type { SampleRange, SandboxSample } from '../../protocol/node.ts';
import type { Cgroups } from '../cgroup/cgroup.ts';
import type { NodeContext } from '../context.ts';
import { downSample } from './down-sample.ts';
import { readLastSample, readSamples, removeSamples, sandboxOfFile } from './sample-file.ts';
import { sampleIntervalMs, samplesPath, startSampler } from './sampler.ts';

const pruneIntervalMs = 10 * 60_000;
/** Sandboxes that are gone and whose samples are kept: a storm of short ones must not fill the disk with small files. */
const goneMax = 10_000;

/** What the node's sandboxes have used. */
export type History = {
  samples(sandboxId: string, range: SampleRange): SandboxSample[];
  latest(sandboxIds: readonly string[]): Record<string, SandboxSample>;
  stop(): void;
};

/**
 * Begins to sample. Of each sandbox at least the last `hours` in which it ran are kept; when it is gone, for so many hours
 * more, of at most 10,000 sandboxes.
 */
export function startHistory(node: NodeContext, cgroups: Cgroups, hours: number): History {
  mkdirSync(node.layout.metrics, { recursive: true, mode: 0o700 });
  const sampler = startSampler(node, cgroups, (hours * 3_600_000) / sampleIntervalMs);
  const prune = () => {
    try {
      pruneGone(node, Date.now() - hours * 3_600_000);
    } catch (error) {
      node.log.warn('old samples could not be removed', { error: messageOf(error) });
    }
  };
  const timer = setInterval(prune, pruneIntervalMs);
  prune();
  return {
    samples: (sandboxId, range) => (isName(sandboxId) ? downSample(readSamples(samplesPath(node, sandboxId)), range) : []),
    latest(sandboxIds) {
      const found = sandboxIds.filter(isName).map(sandboxId => [sandboxId, sampler.latest(sandboxId) ?? readLastSample(samplesPath(node, sandboxId))] as const);
      return Object.fromEntries(found.flatMap(([sandboxId, sample]) => (sample ? [[sandboxId, sample]] : [])));
    },
    stop() {
      clearInterval(timer);
      sampler.stop();
    },
  };
}

/** IDs become names of files. */
const isName = (sandboxId: string) => /^[a-z0-9]+$/.test(sandboxId);

/** Removes the samples of sandboxes that are gone and had their last one before `beforeMs`, and of more than are kept. */
export function pruneGone(node: Pick<NodeContext, 'layout' | 'running' | 'paused'>, beforeMs: number): void {
  const dir = node.layout.metrics;
  const gone = [...new Set(readdirSync(dir).map(sandboxOfFile))]
    .filter(sandboxId => !node.running.has(sandboxId) && !node.paused.has(sandboxId))
    .map(sandboxId => ({ path: join(dir, sandboxId), lastMs: statSync(join(dir, sandboxId), { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((a, b) => b.lastMs - a.lastMs);
  for (const [index, { path, lastMs }] of gone.entries()) if (index >= goneMax || lastMs < beforeMs) removeSamples(path);
}
