import { cpus } from 'node:os';
import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { SandboxResources } from '../../../protocol/node.ts';
import type { PoolCounts } from '../../../protocol/node-usage.ts';
import type { Driver } from '../../drivers/driver.ts';
import type { Layers } from '../../layers/store.ts';
import type { ProcessControl } from '../slot/processes.ts';
import { giveWayTo } from './give-way.ts';
import { type Asked, createRootsAhead } from './roots-ahead.ts';
import { startStandby, type Standby, type StandbyParts } from './standby.ts';

/**
 * How many standby sandboxes are started at a time where half of them are missing; else one, so that creates find a
 * core free.
 */
const refillsAtOnceMax = cpus().length;
/** After a failed start, so that a host in trouble is not kept busy with it. */
const retryDelayMs = 2_000;

/** Standby sandboxes that wait to be taken, so that a create only has to configure one. */
export type Pool = {
  /**
   * A standby sandbox of the driver that nobody had, with a disk of the asked size, and with the asked root or none;
   * null: it gets another disk, and has no root. Undefined when there is none: start one then.
   */
  take(driver: Driver, asked: Asked | null): Standby | undefined;
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
export function createPool(parts: StandbyParts & { layers: Layers }, options: PoolOptions): Pool {
  const { size, resources, driver, log } = options;
  const release = releaseBy.bind(null, options);
  const ready = new Set<Standby>();
  const counts = { hits: 0, misses: 0, refills: 0, failures: 0 };
  const starting = new Set<Promise<void>>();
  let stopped = false;

  const refill = () => {
    const missing = () => size - ready.size - starting.size - roots.underWay();
    const atOnce = missing() * 2 >= size ? refillsAtOnceMax : 1;
    while (!stopped && starting.size < atOnce && missing() > 0) {
      const start = add();
      starting.add(start);
      void start.finally(() => {
        starting.delete(start);
        refill();
        roots.prepare();
      });
    }
  };
  const add = async () => {
    try {
      await giveWay();
      if (stopped) return;
      const standby = await startStandby(parts, { driver, resources, disk: null });
      if (stopped) return await release(standby);
      ready.add(standby);
      counts.refills++;
      void standby.processes.ended.then(() => discard(standby));
    } catch (error) {
      counts.failures++;
      log.warn('a standby sandbox could not be started', { error: messageOf(error) });
      if (!stopped) await Bun.sleep(retryDelayMs);
    }
  };
  const giveWay = () => giveWayTo(options.awaited, { isStopped: () => stopped, isUrgent: () => ready.size * 2 < size });
  const discard = async (standby: Standby) => {
    if (!ready.delete(standby)) return; // taken: it is its sandbox's business now
    await release(standby);
    refill();
  };
  const roots = createRootsAhead(parts, {
    ...options,
    ready,
    isStarting: () => starting.size > 0,
    giveWay,
    discard,
    release,
    changed: refill,
  });

  refill();
  return {
    take(wanted, asked) {
      if (wanted !== driver) return undefined;
      const standby = roots.choose(asked);
      if (standby) ready.delete(standby);
      counts[standby ? 'hits' : 'misses']++;
      refill();
      return standby;
    },
    counts: () => ({ size, ready: ready.size, ...counts }),
    async stop() {
      stopped = true;
      await Promise.all([...starting, roots.stop()]);
      const left = [...ready];
      ready.clear();
      await Promise.all(left.map(release));
    },
  };
}

/** Removes a standby sandbox. Where that fails it is tried again by itself; the pool need not wait for that. */
async function releaseBy(
  { processControl, log }: Pick<PoolOptions, 'processControl' | 'log'>,
  { processes }: Standby,
): Promise<void> {
  await processControl
    .release(processes)
    .catch(error => log.warn('a standby sandbox could not be removed', { error: messageOf(error) }));
}
