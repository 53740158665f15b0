import { readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { platformNiceness } from '../../base/process/niceness.ts';

const oomScoreFile = '/proc/self/oom_score_adj';

/**
 * Gives the platform priority over the programs of sandboxes, for the processor and for memory; all child processes
 * inherit it. When memory is short, the kernel should first end programs of sandboxes, which ask for a score of 500
 * (`native/program.c`). Kubernetes gives pods scores up to 1000, and no program of a sandbox could go below its pod's:
 * both would be equal.
 */
export function takePriority(): void {
  setPriority(platformNiceness);
  if (Number(readFileSync(oomScoreFile, 'utf8')) <= 0) return;
  try {
    writeFileSync(oomScoreFile, '0');
  } catch {
    // A container without CAP_SYS_RESOURCE keeps what its engine gave it.
  }
}
