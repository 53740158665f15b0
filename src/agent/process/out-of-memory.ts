import type { OutOfMemoryWatch } from './process.ts';
import { readOutOfMemoryKills } from '../sandbox/cgroup.ts';

/**
 * Watches the kernel's count of processes killed because memory ran out. The whole sandbox shares the count: if it rose
 * while a process was killed, that is taken for the reason.
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
