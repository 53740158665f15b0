import { expect, test } from 'bun:test';
import { silentLog } from '../../../../base/telemetry/log.ts';
import { createRestoredAhead } from './restored-ahead.ts';
import type { Beginning, RestoredStandby } from '../restored-standby.ts';

const of = (snapshotId: string, memoryMiB = 512, recordsOrigin = true) =>
  ({
    snapshotId,
    recordsOrigin,
    image: { layers: [`layer of ${snapshotId}`] },
    resources: { memoryMiB },
  }) as unknown as Beginning;
const minuteMs = 60_000;

/** Sandboxes restored ahead on a host that is short of nothing, unless the test says so. */
function scene(size: number) {
  const host = {
    nowMs: 0,
    isRoomy: true,
    isRoomyForMore: true,
    isUnreadable: () => false,
    fails: false,
    restored: 0,
    killed: 0,
    released: 0,
  };
  const ends: (() => void)[] = [];
  const removals: ((digest: string) => Promise<void>)[] = [];
  const ahead = createRestoredAhead({
    size,
    restore: async ({ image }) => {
      if (host.fails) throw new Error('the snapshot is damaged');
      host.restored++;
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      ends.push(resolve);
      return { image, processes: { ended, driver: { killFrozen: () => host.killed++ } } } as unknown as RestoredStandby;
    },
    isRoomy: more => !host.isUnreadable() && host.isRoomy && (more === undefined || host.isRoomyForMore),
    admit: async () => ({ [Symbol.dispose]() {} }),
    processControl: { release: async () => void host.released++ },
    layers: { beforeRemoval: letGo => void removals.push(letGo) },
    awaited: () => 0,
    log: silentLog,
    now: () => host.nowMs,
  });
  const settles = async (ready: number) => {
    while (ahead.counts().ready !== ready) await Bun.sleep(1);
  };
  /** A create that comes by itself. */
  const take = (beginning: Beginning) => {
    host.nowMs += 3_000;
    return ahead.take(beginning);
  };
  return { ahead, host, settles, take, ends, removeLayer: (digest: string) => removals[0]?.(digest) };
}

test('one fewer wait than were asked for, and no more than there may be', async () => {
  const { ahead, host, settles, take } = scene(2);
  expect(take(of('a'))).toBeUndefined();
  expect(take(of('b'))).toBeUndefined();
  expect(take(of('a'))).toBeUndefined();
  await settles(1);
  expect(host.restored).toBe(1);
  // Neither another snapshot nor another size counts as the same.
  expect(take(of('b'))).toBeUndefined();
  expect(take(of('a', 1024))).toBeUndefined();
  await settles(2);
  expect(take(of('a'))?.image.layers).toEqual(['layer of a']);
  await settles(2);
  await ahead.stop();
  expect(ahead.counts()).toMatchObject({ ready: 0, hits: 1, misses: 5, failures: 0 });
  expect(host.killed).toBe(host.restored - 1);
  expect(host.released).toBe(host.killed);
});

test('sandboxes that nobody has recently asked for end, and so do those beyond a share that has shrunk', async () => {
  const { ahead, host, settles, take } = scene(3);
  for (const _ of [1, 2, 3, 4]) take(of('a'));
  await settles(3);
  host.nowMs = 6 * minuteMs;
  for (const _ of [1, 2]) take(of('b'));
  await settles(1);
  expect(take(of('b'))?.image.layers).toEqual(['layer of b']);
  await ahead.stop();
});

test('after creates that came together as many wait, the first ones at once, for five minutes', async () => {
  const { ahead, host, settles } = scene(2);
  for (let create = 0; create < 7; create++) expect(ahead.take(of('a'))).toBeUndefined();
  await settles(6);
  for (let create = 0; create < 6; create++) expect(ahead.take(of('a'))).toBeDefined();
  await settles(7);
  await ahead.drop();
  // Nobody is expected to ask for so many again.
  host.nowMs += 3_000;
  for (let create = 0; create < 3; create++) {
    host.nowMs += 3_000;
    ahead.take(of('a'));
  }
  await settles(2);
  await ahead.stop();
});

test('memory that is short, a deleted snapshot and a removed layer end them', async () => {
  const { ahead, host, settles, removeLayer } = scene(2);
  const restoreTwo = async () => {
    for (const snapshotId of ['a', 'a', 'b', 'b']) ahead.take(of(snapshotId));
    await settles(2);
  };
  await restoreTwo();
  await ahead.drop();
  expect(ahead.counts().ready).toBe(0);
  await restoreTwo();
  await ahead.forget('a');
  expect(ahead.counts().ready).toBe(1);
  await removeLayer('layer of b');
  expect(ahead.counts().ready).toBe(0);
  await restoreTwo();
  host.isRoomy = false;
  expect(ahead.take(of('a'))).toBeDefined();
  await settles(0);
  await ahead.stop();
});

test('one that would leave too little room is not restored, and those that wait stay', async () => {
  const { ahead, host, settles } = scene(2);
  for (const _ of [1, 2]) ahead.take(of('a'));
  await settles(1);
  host.isRoomyForMore = false;
  for (const _ of [1, 2]) ahead.take(of('b'));
  await Bun.sleep(20);
  await ahead.forget('b');
  expect(ahead.counts()).toMatchObject({ ready: 1, refills: 1, failures: 0 });
  await ahead.stop();
});

test('creates that begin with a snapshot together, as forks do, count as one', async () => {
  const { ahead, host, settles } = scene(4);
  const snapshot = of('a', 512, false);
  for (let fork = 0; fork < 50; fork++) {
    ahead.take(snapshot);
    host.nowMs += 100;
  }
  // Only what is asked for now waits.
  for (const _ of [1, 2]) ahead.take(of('b'));
  await settles(1);
  expect(ahead.take(of('b'))).toBeDefined();
  host.nowMs += 1000;
  ahead.take(snapshot);
  await settles(3);
  expect(ahead.take(snapshot)?.image.layers).toEqual(['layer of a']);
  await ahead.stop();
});

test('each that waits is counted on by one create at a time', async () => {
  const { ahead, settles } = scene(2);
  for (const _ of [1, 2, 3]) ahead.take(of('a'));
  await settles(2);
  {
    using first = ahead.countOn(of('a'));
    using second = ahead.countOn(of('a'));
    expect([first, second, ahead.countOn(of('a'))].map(Boolean)).toEqual([true, true, false]);
  }
  using again = ahead.countOn(of('a'));
  expect([again, ahead.countOn(of('b'))].map(Boolean)).toEqual([true, false]);
  await ahead.stop();
});

test('one that ends by itself is removed', async () => {
  const { ahead, host, settles, ends } = scene(1);
  for (const _ of [1, 2]) ahead.take(of('a'));
  await settles(1);
  ends[0]?.();
  await settles(0);
  expect(host.released).toBe(1);
  await ahead.stop();
});

test('a snapshot that can’t be restored is not tried again until it is asked for', async () => {
  const { ahead, host } = scene(1);
  host.fails = true;
  for (const _ of [1, 2]) ahead.take(of('b'));
  while (ahead.counts().failures === 0) await Bun.sleep(1);
  host.fails = false;
  expect(ahead.take(of('b'))).toBeUndefined();
  await ahead.stop();
  expect(ahead.counts()).toMatchObject({ ready: 0, failures: 1 });
});

test('if the room can’t be read, nothing is restored ahead', async () => {
  const { ahead, host, settles } = scene(1);
  let looks = 0;
  host.isUnreadable = () => {
    looks++;
    throw new Error('the memory of the host can’t be read');
  };
  for (const _ of [1, 2]) ahead.take(of('a'));
  while (looks === 0) await Bun.sleep(1);
  await ahead.forget('b');
  host.isUnreadable = () => false;
  ahead.take(of('a'));
  await settles(1);
  await ahead.stop();
});
