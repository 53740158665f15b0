import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { diskFile } from '../../snapshot/manifest.ts';
import type { Space } from '../../space/space.ts';
import { allocatedBytes } from '../snapshot/copy-disk.ts';

/** What a new sandbox must leave of the host's memory, on top of its own smallest need. */
const memoryReserveBytes = 512 * 1024 ** 2;

/** What is made for nobody leaves that much of the host's memory to those who ask. */
const roomyShare = 1 / 4;

/** What a sandbox takes of the host by its start alone. */
export type Need = { memoryBytes: number; diskBytes: number };

/** What one takes that begins without memory that was kept: what any does. */
export const leastNeed: Need = { memoryBytes: 0, diskBytes: 0 };

/** What one takes that begins with the memory in a folder, and with a copy of the disk that may be beside it. */
export function needOf(directory: string): Need {
  if (!existsSync(directory)) return leastNeed; // whoever opens it says so
  const pages = readdirSync(directory).filter(name => /^pages-\d+\.img$/.test(name));
  const disk = join(directory, diskFile);
  return {
    memoryBytes: pages.reduce((sum, name) => sum + statSync(join(directory, name)).size, 0),
    diskBytes: existsSync(disk) ? allocatedBytes(disk) : 0,
  };
}

/** Refuses sandboxes that would put those that run at risk. */
export type Admission = {
  /**
   * Keeps what a sandbox needs from others until the answer is disposed of: when it has started it has taken that.
   * Errors: `unavailable`, and `no_space` where the disk has only its reserve left.
   */
  admit(need: Need): Promise<Disposable>;
  /** The same for what nobody waits for: nothing is ended for it. */
  admitAhead(need: Need): Promise<Disposable>;
  /** Whether more of the host's memory is free than what nobody waits for must leave, also with what more is needed. */
  isRoomy(more: Need): boolean;
};

/** `freeMemory` ends what waits frozen, where memory is short. `availableBytes`: of the host's memory. */
export function createAdmission({
  space,
  freeMemory,
  availableBytes = availableMemory,
  totalBytes = totalmem(),
}: {
  space: Pick<Space, 'reserve'>;
  freeMemory(): Promise<void>;
  availableBytes?: () => number;
  totalBytes?: number;
}): Admission {
  let promised = 0;
  const admit = async ({ memoryBytes, diskBytes }: Need, free: () => Promise<void>) => {
    using undo = new DisposableStack();
    undo.use(space.reserve('another sandbox', diskBytes));
    const left = () => availableBytes() - promised - memoryBytes;
    if (left() < memoryReserveBytes) await free();
    if (left() < memoryReserveBytes) throw tooLittle(left() + memoryBytes, memoryBytes);
    promised += memoryBytes;
    undo.defer(() => void (promised -= memoryBytes));
    return undo.move();
  };
  return {
    admit: need => admit(need, freeMemory),
    admitAhead: need => admit(need, async () => {}),
    isRoomy({ memoryBytes }) {
      try {
        return availableBytes() - promised - memoryBytes > Math.max(totalBytes * roomyShare, memoryReserveBytes);
      } catch {
        return false; // a process that can't even look has nothing for what nobody waits for
      }
    },
  };
}

function tooLittle(availableBytes: number, memoryBytes: number): AtollError {
  const mib = (bytes: number) => Math.floor(Math.max(0, bytes) / 1024 ** 2);
  const needed = memoryBytes > 0 ? `the sandbox begins with ${mib(memoryBytes)} MiB, ` : '';
  return new AtollError(
    'unavailable',
    `this node is short of memory: ${mib(availableBytes)} MiB are free, ${needed}` +
      `${mib(memoryReserveBytes)} MiB must stay free`,
    { detail: 'sandbox_capacity_unavailable' },
  );
}

function availableMemory(): number {
  return Number(/^MemAvailable: +(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0) * 1024;
}
