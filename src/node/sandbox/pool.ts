import { cpus } from 'node:os';
import { messageOf } from '../../base/error.ts';
import type { PoolCounts, SandboxResources } from '../../protocol/node.ts';
import type { NodeContext } from '../context.ts';
import { startBlank, type Blank } from './blank.ts';
import { releaseBlank } from './remove.ts';

/** How many blanks are started at a time where half of them are missing; else one, so that creates find a core free. */
const refillsAtOnceMax = cpus().length;
/** For how long refilling gives way to creates and kills; under a steady load the pool must fill again all the same. */
const giveWayMs = { step: 5, max: 100 } as const;
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
  const starting = new Set<Promise<void>>();
  let stopped = false;

  const refill = () => {
    const missing = () => size - blanks.size - starting.size;
    const atOnce = missing() * 2 >= size ? refillsAtOnceMax : 1;
    while (!stopped && starting.size < atOnce && missing() > 0) {
      const start = add();
      starting.add(start);
      void start.finally(() => {
        starting.delete(start);
        refill();
      });
    }
  };
  const add = async () => {
    try {
      await giveWay();
      if (stopped) return;
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
  /** Creates that have their blank and kills are done within milliseconds, and somebody waits for them. */
  const giveWay = async () => {
    for (let waitedMs = 0; node.creating.size + node.killing.size > 0 && waitedMs < giveWayMs.max && !stopped; waitedMs += giveWayMs.step) await Bun.sleep(giveWayMs.step);
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
      await Promise.all(starting);
      const left = [...blanks];
      blanks.clear();
      await Promise.all(left.map(blank => releaseBlank(node, blank)));
    },
  };
}
