import { messageOf } from '../../../../base/error.ts';
import type { Log } from '../../../../base/telemetry/log.ts';
import type { SandboxResources } from '../../../../protocol/node.ts';
import type { PoolCounts } from '../../../../protocol/node-usage.ts';
import type { Driver } from '../../../drivers/driver.ts';
import type { Layers } from '../../../layers/store.ts';
import type { ProcessControl } from '../../slot/processes.ts';
import { giveWayTo } from './give-way.ts';
import { createRefilling } from './refilling.ts';
import { type Asked, createRootsAhead } from './roots-ahead.ts';
import { createShortage } from './shortage.ts';
import { createShrinking } from './shrinking.ts';
import { startStandby, type Standby, type StandbyParts } from '../standby.ts';

/** Pause after a failed start, so that a host in trouble is not kept busy with starts. */
const retryDelayMs = 2_000;
/** The most that a grown pool keeps. */
const grownMax = 128;

/** Standby sandboxes that wait to be taken, so that a create only has to configure one. */
export type Pool = {
  /**
   * An unused standby sandbox of the driver, with a disk of the requested size, and with the requested root or none;
   * null: it will get another disk, and has no root. Undefined when there is none: then start one.
   */
  take(driver: Driver, asked: Asked | null): Standby | undefined;
  counts(): PoolCounts;
  /** Ends the surplus of a grown pool, and lets it grow again only for later creates: the host is short. */
  shrink(): Promise<void>;
  /** Stops refilling and removes the standby sandboxes. */
  stop(): Promise<void>;
};

/** What a pool needs. */
type PoolOptions = {
  /** How many standby sandboxes it always keeps. */
  size: number;
  /** How many it keeps while the host has room, for creates that come together; 0: no more than `size`. */
  roomySize: number;
  /** Whether the host has so much room that more of them may use some. */
  isRoomy(): boolean;
  /** The limits can be changed when a standby sandbox is taken; the disk can't. */
  resources: SandboxResources;
  /** A driver whose sandboxes adopt their root. */
  driver: Driver;
  /** How many creates and kills somebody waits for now. */
  awaited(): number;
  processControl: ProcessControl;
  log: Log;
};

/**
 * Keeps `size` standby sandboxes ready, and `roomySize` while the host has room. After creates that came together and
 * found too few, it keeps as many as they wanted, for some minutes.
 */
export function createPool(parts: StandbyParts & { layers: Layers }, options: PoolOptions): Pool {
  const { size, roomySize, resources, driver, log } = options;
  const release = releaseBy.bind(null, options);
  const ready = new Set<Standby>();
  const counts = { hits: 0, misses: 0, refills: 0, failures: 0 };
  const shortage = createShortage(undefined, roomySize);
  let stopped = false;

  const limits = {
    size,
    /** How many it keeps now. */
    wanted: () => Math.max(size, Math.min(shortage.most(), grownMax)),
    isRoomy: () => options.isRoomy(),
  };
  const add = async () => {
    await giveWay();
    if (stopped) return;
    const standby = await startStandby(parts, { driver, resources, disk: null });
    if (stopped) return await release(standby);
    ready.add(standby);
    counts.refills++;
    shortage.refilled();
    void standby.processes.ended.then(() => discard(standby));
  };
  const failed = async (error: unknown) => {
    counts.failures++;
    log.warn('a standby sandbox could not be started', { error: messageOf(error) });
    if (!stopped) await Bun.sleep(retryDelayMs);
  };
  const giveWay = () => giveWayTo(options.awaited, { isStopped: () => stopped, isUrgent: () => ready.size * 2 < size });
  const discard = async (standby: Standby) => {
    if (!ready.delete(standby)) return; // it was taken, and belongs to its sandbox now
    await release(standby);
    refilling.begin();
  };
  const shrinking = createShrinking({ ...limits, ready, release, forget: () => shortage.forget() });
  const isStarting = () => refilling.underWay() > 0 && ready.size < size;
  const changed = () => refilling.begin();
  const side = { size: limits.wanted, ready, isStarting, giveWay, discard, release, changed };
  const roots = createRootsAhead(parts, { ...options, ...side });
  const refilling = createRefilling({
    ...limits,
    missingOf: count => count - ready.size - roots.underWay(),
    isAwaited: () => options.awaited() > 0,
    start: () => add().catch(failed),
    changed: () => roots.prepare(),
  });

  refilling.begin();
  return {
    take(askedDriver, asked) {
      if (askedDriver !== driver) return undefined;
      shortage.taken();
      const standby = roots.choose(asked);
      if (standby) ready.delete(standby);
      counts[standby ? 'hits' : 'misses']++;
      refilling.begin();
      return standby;
    },
    counts: () => ({ size: limits.wanted(), ready: ready.size, ...counts }),
    shrink: () => shrinking.shrink(),
    async stop() {
      stopped = true;
      shrinking.stop();
      await Promise.all([refilling.stop(), roots.stop()]);
      const left = [...ready];
      ready.clear();
      await Promise.all(left.map(release));
    },
  };
}

/** Removes a standby sandbox. If that fails it repeats by itself; the pool need not wait for that. */
async function releaseBy(
  { processControl, log }: Pick<PoolOptions, 'processControl' | 'log'>,
  { processes }: Standby,
): Promise<void> {
  await processControl
    .release(processes)
    .catch(error => log.warn('a standby sandbox could not be removed', { error: messageOf(error) }));
}
