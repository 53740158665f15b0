import { messageOf } from '../../../../base/error.ts';
import type { Log } from '../../../../base/telemetry/log.ts';
import type { RestoredCounts } from '../../../../protocol/node-usage.ts';
import type { ProcessControl } from '../../slot/processes.ts';
import type { Layers } from '../../../layers/store.ts';
import { createDemand, isSame } from './demand.ts';
import { giveWayTo } from './give-way.ts';
import type { Beginning, RestoredStandby } from '../restored-standby.ts';

/** Pause before each one beyond the size: the creates that want so many need the processors now. */
const growDelayMs = 100;
/** Time between two checks whether the waiting sandboxes are still wanted, and whether more are. */
const lookMs = 2_000;

/**
 * Sandboxes that were restored before anybody asked, from the snapshots that creates begin with again and again; and,
 * for a driver that wants the root from the start, sandboxes started with it.
 */
export type RestoredAhead = {
  /** Remembers what a create asks for, and gives it one that waits; undefined: there is none. */
  take(beginning: Beginning): RestoredStandby | undefined;
  /**
   * Reserves one that waits until the answer is disposed of: whoever will take it needs no room of the host for it.
   * Undefined: none is left to reserve.
   */
  countOn(beginning: Beginning): Disposable | undefined;
  counts(): RestoredCounts;
  /** Ends those that wait, and forgets what was asked for: the host is short of memory. */
  drop(): Promise<void>;
  /** Ends those that begin with a snapshot, which is being deleted. */
  forget(snapshotId: string): Promise<void>;
  /** Stops restoring and ends those that wait. */
  stop(): Promise<void>;
};

/** What restoring ahead needs. */
type RestoredAheadOptions = {
  /** How many wait at most, from all snapshots together, unless creates come together. */
  size: number;
  restore(beginning: Beginning): Promise<RestoredStandby>;
  /**
   * Whether the host has so much room that sandboxes for nobody may use some: those that wait, and one more if `more`
   * is given. One that leaves too little would end right after its restore.
   */
  isRoomy(more?: Beginning): boolean;
  /**
   * Reserves what one takes of the host until it is disposed of. Fails if there is not enough; nothing is ended for
   * it.
   */
  admit(beginning: Beginning): Promise<Disposable>;
  processControl: Pick<ProcessControl, 'release'>;
  layers: Pick<Layers, 'beforeRemoval'>;
  /** How many creates and kills somebody waits for now. */
  awaited(): number;
  log: Log;
  /** Milliseconds of a clock that does not go back. Default: since this process began. */
  now?(): number;
};

type Waiting = RestoredStandby & { beginning: Beginning; snapshotId: string | null };

/** Nobody has asked for anything yet. */
export function createRestoredAhead(options: RestoredAheadOptions): RestoredAhead {
  const { size, log, now = () => performance.now() } = options;
  const asked = createDemand(size, now);
  const waiting = new Set<Waiting>();
  const expected = new Set<Beginning>();
  const counts = { hits: 0, misses: 0, refills: 0, failures: 0 };
  let stopped = false;
  const of = (beginning: Beginning) => [...waiting].filter(one => isSame(one.beginning, beginning));

  const end = async (one: Waiting) => {
    if (waiting.delete(one)) await release(options, one); // else it was taken, and belongs to its sandbox now
  };
  const endAll = async (isMeant: (one: Waiting) => boolean) => {
    await Promise.all([...waiting].filter(isMeant).map(end));
  };
  const add = async (beginning: Beginning) => {
    try {
      using _room = await options.admit(beginning);
      const one = { ...(await options.restore(beginning)), beginning, snapshotId: beginning.snapshotId };
      waiting.add(one);
      counts.refills++;
      asked.refilled();
      void one.processes.ended.then(() => end(one));
    } catch (error) {
      counts.failures++;
      // The next create that asks for it restores it itself, and gets the error.
      asked.forget(other => isSame(other, beginning));
      log.warn('a snapshot could not be restored ahead', { error: messageOf(error) });
    }
  };
  const fill = async () => {
    for (;;) {
      await giveWayTo(options.awaited, { isStopped: () => stopped, isUrgent: () => false });
      const wanted = options.isRoomy() ? asked.wanted() : [];
      const kept = new Set(wanted.flatMap(({ beginning, count }) => of(beginning).slice(0, count)));
      await endAll(one => !kept.has(one));
      const next = wanted.find(({ beginning, count }) => of(beginning).length < count && options.isRoomy(beginning));
      // While somebody waits, no more than the usual number are restored: the next look restores the others.
      if (stopped || !next || (waiting.size >= size && options.awaited() > 0)) return;
      if (waiting.size >= size) await Bun.sleep(growDelayMs);
      await add(next.beginning);
    }
  };
  const filling = onceAtATime(fill, log);
  const look = () => void (stopped || filling.begin());
  /** Includes those that are under way: they would appear after the others have ended. */
  const endNow = async (isMeant: (beginning: Pick<Beginning, 'snapshotId' | 'image'>) => boolean) => {
    asked.forget(isMeant);
    await endAll(isMeant);
    await filling.ended();
    await endAll(isMeant);
  };
  const looking = setInterval(() => waiting.size > 0 && look(), lookMs).unref();
  options.layers.beforeRemoval(digest => endNow(({ image }) => image.layers.includes(digest)));

  return {
    take(beginning) {
      asked.note(beginning);
      const [one] = of(beginning);
      if (one) waiting.delete(one);
      counts[one ? 'hits' : 'misses']++;
      look();
      return one;
    },
    countOn: beginning => countOnOne(expected, beginning, of(beginning).length),
    counts: () => ({ ready: waiting.size, ...counts }),
    drop: () => endNow(() => true),
    forget: snapshotId => endNow(one => one.snapshotId === snapshotId),
    async stop() {
      stopped = true;
      clearInterval(looking);
      await endNow(() => true);
    },
  };
}

/** Ends processes that wait. If that fails it repeats by itself; nobody need wait for that. */
async function release(
  { processControl, log }: RestoredAheadOptions,
  { processes }: Pick<Waiting, 'processes'>,
): Promise<void> {
  processes.driver.killFrozen(processes.slot);
  await processControl
    .release(processes)
    .catch(error => log.warn('a restored sandbox could not be removed', { error: messageOf(error) }));
}

/** Notes that somebody expects one of those that wait, if there is one for everybody. */
function countOnOne(expected: Set<Beginning>, beginning: Beginning, waiting: number): Disposable | undefined {
  if ([...expected].filter(other => isSame(other, beginning)).length >= waiting) return undefined;
  const own = { ...beginning };
  expected.add(own);
  return { [Symbol.dispose]: () => void expected.delete(own) };
}

/** Begins the work unless it is under way. If it fails, it is tried again the next time. */
function onceAtATime(work: () => Promise<void>, log: Log) {
  let underWay: Promise<void> | undefined;
  const failed = (error: unknown) => log.warn('nothing could be restored ahead', { error: messageOf(error) });
  return {
    begin() {
      underWay ??= work()
        .catch(failed)
        .finally(() => (underWay = undefined));
    },
    /** Resolves when it is over. */
    async ended() {
      await underWay;
    },
  };
}
