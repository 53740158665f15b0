import { messageOf } from '../../../../base/error.ts';
import type { Log } from '../../../../base/telemetry/log.ts';
import type { SandboxResources } from '../../../../protocol/node.ts';
import type { Driver } from '../../../drivers/driver.ts';
import type { Layers } from '../../../layers/store.ts';
import type { Layout } from '../../../layout.ts';
import { slotMountPoint } from '../../slot/slot-disk.ts';
import type { Standby } from '../standby.ts';
import { createUsualRoot, isSameRoot } from './usual-root.ts';

/** What a standby sandbox is taken for. */
export type Asked = {
  resources: SandboxResources;
  /** Layer digests of its root, lowest first. */
  layers: readonly string[];
};

/**
 * Gives standby sandboxes the root that creates ask for most often, before anybody asks: putting it in place is the
 * longest part of a create.
 */
type RootsAhead = {
  /** The standby sandbox that fits best; it stays in the pool. Null: it will get another disk, and has no root. */
  choose(asked: Asked | null): Standby | undefined;
  /** How many standby sandboxes are out of the pool because they are getting their root. */
  underWay(): number;
  /** Begins with the next standby sandbox that should get a root, if there is one. */
  prepare(): void;
  /** Resolves when nothing is under way any more. Nothing begins after this. */
  stop(): Promise<void>;
};

/** What giving roots ahead needs. */
type RootsAheadParts = { layers: Layers; layout: Layout };

/** The pool that it works for. */
type PoolSide = {
  /** How many standby sandboxes it keeps now. */
  size(): number;
  resources: SandboxResources;
  driver: Driver;
  log: Log;
  ready: Set<Standby>;
  /** Whether standby sandboxes are being started, which matter more than a root. */
  isStarting(): boolean;
  giveWay(): Promise<void>;
  /** Removes one that was ready and starts another; never fails. */
  discard(standby: Standby): Promise<void>;
  /** Removes one that is out of the pool; never fails. */
  release(standby: Standby): Promise<void>;
  /** Called when one was put back or released. */
  changed(): void;
};

/** Looks after the roots of a pool's standby sandboxes. */
export function createRootsAhead({ layers: store, layout }: RootsAheadParts, pool: PoolSide): RootsAhead {
  const { resources, driver, log, ready, discard, release } = pool;
  const usual = createUsualRoot(pool.size);
  let preparing: Promise<void> | undefined;
  let rooting: Standby | undefined;
  let stopped = false;
  const bare = () => [...ready].find(({ layers }) => layers === null);
  const withRoot = (root: readonly string[]) => [...ready].filter(({ layers }) => isSameRoot(layers, root));

  const giveRoot = async (standby: Standby, root: readonly string[]) => {
    const { slot, pid, ended } = standby.processes;
    let hasEnded = false;
    void ended.then(() => (hasEnded = true));
    try {
      const points = await Promise.all(root.map(digest => store.mount(digest)));
      await driver.giveRoot(slot, pid, { layers: points, disk: slotMountPoint(layout, slot) });
      standby.layers = root;
      ready.add(standby);
      if (hasEnded) await discard(standby);
    } catch (error) {
      // Creates that ask for this root get its error themselves. Nobody else should pay for another attempt.
      usual.forget(one => isSameRoot(one, root));
      log.warn('a standby sandbox could not be given a root', { error: messageOf(error) });
      await release(standby);
    }
  };
  const next = async () => {
    await pool.giveWay();
    const wanted = usual.wanted();
    if (stopped || !wanted || pool.isStarting()) return false;
    const stale = [...ready].find(({ layers }) => layers !== null && !isSameRoot(layers, wanted.root));
    if (stale) return discard(stale).then(() => false);
    const standby = bare();
    if (!standby || withRoot(wanted.root).length >= wanted.count) return false;
    ready.delete(standby);
    rooting = standby;
    await giveRoot(standby, wanted.root).finally(() => (rooting = undefined));
    pool.changed();
    return true;
  };
  const untilDone = async () => {
    while (await next());
  };
  // Sandboxes that nobody has asked for must not keep a layer that is being removed.
  store.beforeRemoval(async digest => {
    usual.forget(root => root.includes(digest));
    await preparing;
    await Promise.all([...ready].filter(({ layers }) => layers?.includes(digest)).map(discard));
  });

  return {
    choose(asked) {
      const isUsualSize = asked && sizes.every(size => asked.resources[size] === resources[size]);
      usual.note(isUsualSize ? asked.layers : null);
      if (asked && asked.resources.diskMiB !== resources.diskMiB) return undefined;
      return (isUsualSize ? withRoot(asked.layers)[0] : undefined) ?? bare();
    },
    underWay: () => (rooting ? 1 : 0),
    prepare() {
      preparing ??= untilDone()
        .catch(error => log.warn('roots could not be prepared', { error: messageOf(error) }))
        .finally(() => (preparing = undefined));
    },
    async stop() {
      stopped = true;
      await preparing;
    },
  };
}

/** One of another size is resized before it gets its root. */
const sizes = ['cpuCount', 'memoryMiB', 'diskMiB'] as const;
