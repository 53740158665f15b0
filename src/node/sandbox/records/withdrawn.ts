import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { readIfThere, writeWhole } from '../../../base/small-file.ts';

/** Executions that may no longer begin on this node, however late somebody asks for them. */
export type Withdrawn = {
  /** Errors: `conflict` for an execution that was withdrawn. */
  require(executionId: string): void;
  /** When this returns, it holds even after a loss of power. */
  add(executionId: string): void;
};

/** A caller that stands still for longer was taken for dead long ago, and its calls have timed out. */
const keptMs = 24 * 3_600_000;
/** Beyond this number the oldest are forgotten. */
const keptMax = 2_048;

/** Opens the list, which is kept in a file of the folder `data`. */
export function openWithdrawn(data: string, nowMs: () => number = Date.now): Withdrawn {
  const path = join(data, 'withdrawn.json');
  const text = readIfThere(path);
  let entries = text ? (JSON.parse(text) as { executionId: string; atMs: number }[]) : [];
  return {
    require(executionId) {
      if (entries.some(entry => entry.executionId === executionId))
        throw new AtollError('conflict', 'this start came too late: it was withdrawn');
    },
    add(executionId) {
      const young = entries.filter(entry => entry.executionId !== executionId && nowMs() - entry.atMs < keptMs);
      entries = [...young, { executionId, atMs: nowMs() }].slice(-keptMax);
      writeWhole(path, JSON.stringify(entries));
    },
  };
}
