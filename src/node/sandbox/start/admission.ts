import { readFileSync } from 'node:fs';
import { AtollError } from '../../../base/error.ts';
import type { Space } from '../../space/space.ts';

/** What a new sandbox must leave of the host's memory, on top of its own smallest need. */
const memoryReserveBytes = 512 * 1024 ** 2;

/**
 * Refuses a sandbox that would put those that run at risk. `freeMemory` ends what waits frozen, where memory is short.
 * Errors: `unavailable`, and `no_space` where the disk has only its reserve left.
 */
export async function admit({ space, freeMemory }: { space: Space; freeMemory(): Promise<void> }): Promise<void> {
  space.require('another sandbox');
  if (availableMemory() >= memoryReserveBytes) return;
  await freeMemory();
  const available = availableMemory();
  if (available >= memoryReserveBytes) return;
  const mib = (bytes: number) => Math.floor(bytes / 1024 ** 2);
  throw new AtollError(
    'unavailable',
    `this node is short of memory: ${mib(available)} MiB are free, ${mib(memoryReserveBytes)} MiB must stay free`,
    { detail: 'sandbox_capacity_unavailable' },
  );
}

function availableMemory(): number {
  return Number(/^MemAvailable: +(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0) * 1024;
}
