import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { diskFile } from '../../snapshot/manifest.ts';
import type { Space } from '../../space/space.ts';
import { allocatedBytes } from '../../disks/allocated-bytes.ts';

/** What a new sandbox must leave of the host's memory, beyond its own smallest need. */
const memoryReserveBytes = 512 * 1024 ** 2;

/** Sandboxes that are made for nobody yet leave this share of the host's memory to those that are asked for. */
const roomyShare = 1 / 4;

/** What a sandbox takes of the host just by starting. */
export type Need = { memoryBytes: number; diskBytes: number };

/** What a sandbox takes that begins without kept memory. */
export const leastNeed: Need = { memoryBytes: 0, diskBytes: 0 };

/** What a sandbox takes that begins with the memory in a folder, and with a copy of the disk that may be in it. */
export function needOf(directory: string): Need {
  if (!existsSync(directory)) return leastNeed; // whoever opens it reports that
  const pages = readdirSync(directory).filter(name => /^pages-\d+\.img$/.test(name));
  const disk = join(directory, diskFile);
  return {
    memoryBytes: pages.reduce((sum, name) => sum + statSync(join(directory, name)).size, 0),
    diskBytes: existsSync(disk) ? allocatedBytes(disk) : 0,
  };
}

/** Refuses sandboxes that would put the running ones at risk. */
export type Admission = {
  /**
   * Reserves what a sandbox needs until the answer is disposed of, which happens once it has started and taken that.
   * Errors: `unavailable`, and `no_space` if the disk has only its reserve left.
   */
  admit(need: Need): Promise<Disposable>;
  /** The same for a sandbox that nobody waits for: nothing is ended for it. */
  admitAhead(need: Need): Promise<Disposable>;
  /** Whether more of the host's memory is free than sandboxes made ahead must leave, even with `more` taken. */
  isRoomy(more: Need): boolean;
};

/** `freeMemory` ends frozen sandboxes if memory is short. `availableBytes` is that of the host's memory. */
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
        return false; // a process that can't even look has no room for sandboxes that nobody waits for
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
