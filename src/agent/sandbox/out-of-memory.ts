import type { OutOfMemoryWatch } from '../process/process.ts';
import { readOutOfMemoryKills } from './cgroup.ts';

/**
 * Watches the kernel's count of processes ended for want of memory. The count is the whole sandbox's: a process that was
 * killed while it rose is taken for the one that it rose for.
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
