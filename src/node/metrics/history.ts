import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error.ts';
import type { SampleRange, SandboxSample } from '../../protocol/node-usage.ts';
import { downSample } from './down-sample.ts';
import { readLastSample, readSamples, removeSamples, sandboxOfFile } from './sample-file.ts';
import { sampleIntervalMs, samplesPath, startSampler, type SamplerParts } from './sampler.ts';

const pruneIntervalMs = 10 * 60_000;
/**
 * For how many sandboxes samples are kept after their end: a storm of short ones must not fill the disk with small
 * files.
 */
const goneMax = 10_000;

/** What the node's sandboxes have used. */
export type History = {
  samples(sandboxId: string, range: SampleRange): SandboxSample[];
  latest(sandboxIds: readonly string[]): Record<string, SandboxSample>;
  stop(): void;
};

/** What taking and keeping samples needs. */
export type HistoryParts = SamplerParts & {
  sandboxes: {
    /** Undefined if the node does not, or no longer, know the sandbox. */
    get(sandboxId: string): unknown;
  };
};

/**
 * Begins to sample. Keeps at least the last `hours` in which each sandbox ran; when it is gone, keeps them for as many
 * hours more, for at most 10,000 sandboxes.
 */
export function startHistory(parts: HistoryParts, hours: number): History {
  const { layout, sandboxes, log } = parts;
  mkdirSync(layout.metrics, { recursive: true, mode: 0o700 });
  const sampler = startSampler(parts, (hours * 3_600_000) / sampleIntervalMs);
  const prune = () => {
    try {
      pruneGone(layout.metrics, sandboxId => sandboxes.get(sandboxId) !== undefined, Date.now() - hours * 3_600_000);
    } catch (error) {
      log.warn('old samples could not be removed', { error: messageOf(error) });
    }
  };
  const timer = setInterval(prune, pruneIntervalMs);
  prune();
  return {
    samples: (sandboxId, range) =>
      isName(sandboxId) ? downSample(readSamples(samplesPath(layout, sandboxId), range), range) : [],
    latest(sandboxIds) {
      const found = sandboxIds
        .filter(isName)
        .map(
          sandboxId =>
            [sandboxId, sampler.latest(sandboxId) ?? readLastSample(samplesPath(layout, sandboxId))] as const,
        );
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

/**
 * Removes from `dir` the samples of sandboxes that are gone and had their last sample before `beforeMs`, and samples
 * of sandboxes beyond the number that is kept.
 */
export function pruneGone(dir: string, isKnown: (sandboxId: string) => boolean, beforeMs: number): void {
  const gone = [...new Set(readdirSync(dir).map(sandboxOfFile))]
    .filter(sandboxId => !isKnown(sandboxId))
    .map(sandboxId => ({
      path: join(dir, sandboxId),
      lastMs: statSync(join(dir, sandboxId), { throwIfNoEntry: false })?.mtimeMs ?? 0,
    }))
    .sort((a, b) => b.lastMs - a.lastMs);
  for (const [index, { path, lastMs }] of gone.entries())
    if (index >= goneMax || lastMs < beforeMs) removeSamples(path);
}
