import { messageOf } from '../../base/error.ts';
import type { PoolCounts, SandboxResources } from '../../protocol/node.ts';
import type { NodeContext } from '../context.ts';
import { startBlank, type Blank } from './blank.ts';
import { releaseBlank } from './remove.ts';

/** How many blanks are started at a time: creates that come meanwhile find a core free. */
const refillsAtOnce = 1;
/** After a failed start, so that a host in trouble is not kept busy with it. */
const retryDelayMs = 2_000;

/** Blank sandboxes that wait to be claimed, so that a create only has to furnish one. */
export type Pool = {
  /** A blank that nobody had, with a disk of the asked size, if one is asked for; undefined when there is none: start one then. */
  take(diskMiB?: number): Blank | undefined;
  ready(): number;
  counts(): PoolCounts;
  /** Stops refilling and removes the blanks. */
  stop(): Promise<void>;
};

/** Keeps `size` blanks of the given resources ready. Limits can be changed when one is claimed, the disk can't. */
export function createPool(node: NodeContext, size: number, resources: SandboxResources): Pool {
  const blanks = new Set<Blank>();
  const counts = { hits: 0, misses: 0, refills: 0, failures: 0 };
  let starting = 0;
  let stopped = false;
  let idle = Promise.resolve();

  const refill = () => {
    while (!stopped && starting < refillsAtOnce && blanks.size + starting < size) {
      starting++;
      idle = add().finally(() => {
        starting--;
        refill();
      });
    }
  };
  const add = async () => {
    try {
      const blank = await startBlank(node, resources);
      if (stopped) return await releaseBlank(node, blank);
      blanks.add(blank);
      counts.refills++;
      void blank.ended.then(() => discard(blank));
    } catch (error) {
      counts.failures++;
      node.log.warn('a blank sandbox could not be started', { error: messageOf(error) });
      if (!stopped) await Bun.sleep(retryDelayMs);
    }
  };
  const discard = async (blank: Blank) => {
    if (!blanks.delete(blank)) return; // claimed: it is its sandbox's business now
    await releaseBlank(node, blank);
    refill();
  };

  refill();
  return {
    take(diskMiB) {
      const [blank] = diskMiB === undefined || diskMiB === resources.diskMiB ? blanks : [];
      if (!blank) {
        counts.misses++;
        return undefined;
      }
      counts.hits++;
      blanks.delete(blank);
      refill();
      return blank;
    },
    ready: () => blanks.size,
    counts: () => ({ size, ready: blanks.size, ...counts }),
    async stop() {
      stopped = true;
      await idle;
      const left = [...blanks];
      blanks.clear();
      await Promise.all(left.map(blank => releaseBlank(node, blank)));
    },
  };
}
