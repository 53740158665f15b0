import { readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { platformNiceness } from '../../base/process/niceness.ts';

const oomScoreFile = '/proc/self/oom_score_adj';

/**
 * Puts the platform before the programs of sandboxes, for the processor and for memory; all processes inherit it. Where
 * memory is short the kernel is to end programs of sandboxes first, which ask for a score of 500 (`native/program.c`).
 * Kubernetes gives pods up to 1000, below which no program of a sandbox could go: both would be equal.
 */
export function takePriority(): void {
  setPriority(platformNiceness);
  if (Number(readFileSync(oomScoreFile, 'utf8')) <= 0) return;
  try {
    writeFileSync(oomScoreFile, '0');
  } catch {
    // A container without CAP_SYS_RESOURCE has what its engine gave it.
  }
}
