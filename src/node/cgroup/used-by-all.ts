import type { Cgroups } from './cgroup.ts';

/**
 * Processor time that a group of groups has used so far, microseconds. The file is not kept open, because nobody
 * removes such a group and would then close it.
 */
export function usedByAllUs(cgroups: Pick<Cgroups, 'cpuUs' | 'forget'>, path: string): number {
  const usedUs = cgroups.cpuUs(path);
  cgroups.forget(path);
  return usedUs;
}
