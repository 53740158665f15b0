import { cpus } from 'node:os';
import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { SandboxResources } from '../../../protocol/node.ts';
import type { PoolCounts } from '../../../protocol/node-usage.ts';
import type { Driver } from '../../drivers/driver.ts';
import type { ProcessControl } from '../slot/processes.ts';
import { startStandby, type Standby, type StandbyParts } from './standby.ts';

/**
 * How many standby sandboxes are started at a time where half of them are missing; else one, so that creates find a
 * core free.
 */
const refillsAtOnceMax = cpus().length;
/** For how long refilling gives way to creates and kills; under a steady load the pool must fill again all the same. */
const giveWayMs = { step: 5, max: 100 } as const;
/** After a failed start, so that a host in trouble is not kept busy with it. */
const retryDelayMs = 2_000;

/** Standby sandboxes that wait to be taken, so that a create only has to configure one. */
export type Pool = {
  /**
   * A standby sandbox of the driver that nobody had, with a disk of the asked size, if one is asked for; undefined when
   * there is none: start one then.
   */
  take(driver: Driver, diskMiB: number | undefined): Standby | undefined;
  counts(): PoolCounts;
  /** Stops refilling and removes the standby sandboxes. */
  stop(): Promise<void>;
};

/** What a pool is made with. */
type PoolOptions = {
  size: number;
  /** Limits can be changed when a standby sandbox is taken, the disk can't. */
  resources: SandboxResources;
  /** A driver whose sandboxes adopt their root. */
  driver: Driver;
  /** How many creates and kills somebody waits for now. */
  awaited(): number;
  processControl: ProcessControl;
  log: Log;
};

/** Keeps `size` standby sandboxes ready. */
export function createPool(parts: StandbyParts, options: PoolOptions): Pool {
  const { size, resources, driver, processControl, log } = options;
  const ready = new Set<Standby>();
  const counts = { hits: 0, misses: 0, refills: 0, failures: 0 };
  const starting = new Set<Promise<void>>();
  let stopped = false;

  const refill = () => {
    const missing = () => size - ready.size - starting.size;
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
      const standby = await startStandby(parts, driver, resources, null);
      if (stopped) return await processControl.release(standby.processes);
      ready.add(standby);
      counts.refills++;
      void standby.processes.ended.then(() => discard(standby));
    } catch (error) {
      counts.failures++;
      log.warn('a standby sandbox could not be started', { error: messageOf(error) });
      if (!stopped) await Bun.sleep(retryDelayMs);
    }
  };
  /** Creates that have their standby sandbox and kills are done within milliseconds, and somebody waits for them. */
  const giveWay = async () => {
    for (let waitedMs = 0; options.awaited() > 0 && waitedMs < giveWayMs.max && !stopped; waitedMs += giveWayMs.step)
      await Bun.sleep(giveWayMs.step);
  };
  const discard = async (standby: Standby) => {
    if (!ready.delete(standby)) return; // taken: it is its sandbox's business now
    await processControl.release(standby.processes);
    refill();
  };

  refill();
  return {
    take(wanted, diskMiB) {
      if (wanted !== driver) return undefined;
      const [standby] = diskMiB === undefined || diskMiB === resources.diskMiB ? ready : [];
      if (!standby) {
        counts.misses++;
        return undefined;
      }
      counts.hits++;
      ready.delete(standby);
      refill();
      return standby;
    },
    counts: () => ({ size, ready: ready.size, ...counts }),
    async stop() {
      stopped = true;
      await Promise.all(starting);
      const left = [...ready];
      ready.clear();
      await Promise.all(left.map(({ processes }) => processControl.release(processes)));
    },
  };
}
