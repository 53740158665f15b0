import type { OutOfMemoryWatch } from './process.ts';
import { readOutOfMemoryKills } from '../sandbox/cgroup.ts';

/**
 * Watches the kernel's count of processes killed for want of memory. The whole sandbox shares the count: a process that
 * was killed while it rose is taken for the reason.
 */
export function watchOutOfMemory(): OutOfMemoryWatch {
  let seen = readOutOfMemoryKills();
  return {
    sawKill() {
      const kills = readOutOfMemoryKills();
      const rose = kills > seen;
      seen = kills;
      return rose;
    },
  };
}
