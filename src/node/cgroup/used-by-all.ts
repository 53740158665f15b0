import type { Cgroups } from './cgroup.ts';

/**
 * Processor time that a group of others has used so far, microseconds. Not kept open: nobody removes such a group, and
 * would close it.
 */
export function usedByAllUs(cgroups: Pick<Cgroups, 'cpuUs' | 'forget'>, path: string): number {
  const usedUs = cgroups.cpuUs(path);
  cgroups.forget(path);
  return usedUs;
}
