import { afterEach, expect, jest, test } from 'bun:test';
import { silentLog } from '../../../../base/telemetry/log.ts';
import { createPool } from './pool.ts';
import type { Standby } from '../standby.ts';

afterEach(() => void jest.useRealTimers());

/** A pool whose standby sandboxes start at once; one that is removed does not come back. */
function scene(size: number, roomySize = 0) {
  const host = { isRoomy: true, awaited: 0, roomAskedFor: 0, removalFails: false, removals: 0 };
  const started: { standby: Standby; end: () => void }[] = [];
  const driver = {};
  const start = () => {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const standby = { processes: { ended }, layers: null } as unknown as Standby;
    started.push({ standby, end });
    return Promise.resolve(standby);
  };
  const release = () => {
    host.removals++;
    return host.removalFails ? Promise.reject(new Error('its mount is in use')) : Promise.resolve();
  };
  const pool = createPool(
    { starts: { run: start }, layers: { beforeRemoval: () => {} }, layout: {} } as unknown as Parameters<
      typeof createPool
    >[0],
    {
      size,
      roomySize,
      resources: {},
      driver,
      isRoomy() {
        host.roomAskedFor++;
        return host.isRoomy;
      },
      awaited: () => host.awaited,
      log: silentLog,
      processControl: { release },
    } as unknown as Parameters<typeof createPool>[1],
  );
  const take = (times: number) => {
    let found = 0;
    for (let time = 0; time < times; time++) if (pool.take(driver as never, null)) found++;
    return found;
  };
  const ready = async (count: number) => {
    while (pool.counts().ready !== count) await Bun.sleep(1);
  };
  return { pool, host, started, take, ready };
}

test('a standby sandbox that ends and can’t be removed at once is replaced', async () => {
  const { pool, host, started, ready } = scene(1);
  host.removalFails = true;
  await ready(1);
  started[0]?.end();
  while (started.length < 2 || pool.counts().ready < 1) await Bun.sleep(1);
  expect(host.removals).toBe(1);
  expect(pool.counts()).toMatchObject({ refills: 2, failures: 0 });
  await pool.stop();
  expect(host.removals).toBe(2);
});

test('as many as came together and found too few are kept from then on', async () => {
  const { pool, take, ready, host } = scene(2);
  await ready(2);
  expect(take(5)).toBe(2);
  expect(pool.counts()).toMatchObject({ size: 5, hits: 2, misses: 3 });
  await ready(5);
  expect(take(5)).toBe(5);
  await ready(5);
  expect(host.removals).toBe(0);
  await pool.stop();
  expect(host.removals).toBe(5);
});

test('a pool does not grow beside creates that somebody waits for', async () => {
  jest.useFakeTimers();
  const { pool, take, host, started } = scene(2);
  const pass = async () => {
    jest.advanceTimersByTime(50);
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
  };
  await pass();
  host.awaited = 1;
  take(5);
  for (let time = 0; time < 20; time++) await pass();
  // It still starts those that it always keeps.
  expect(started.length).toBeLessThanOrEqual(4);
  host.awaited = 0;
  for (let time = 0; time < 20; time++) await pass();
  expect(pool.counts().ready).toBe(5);
  await pool.stop();
});

test('no pool keeps more than 128, nor one on a host that has no room for more than its size', async () => {
  const one = scene(1);
  one.take(200);
  expect(one.pool.counts().size).toBe(128);
  await one.pool.stop();
  const { pool, take, ready, host, started } = scene(2);
  await ready(2);
  host.isRoomy = false;
  take(5);
  while (host.roomAskedFor === 0) await Bun.sleep(1);
  expect([pool.counts().ready, started.length]).toEqual([2, 4]);
  await pool.stop();
});

test('a short host gets a grown pool’s surplus back, and only new creates make it grow again', async () => {
  const { pool, take, ready, host } = scene(2);
  await ready(2);
  take(6);
  await ready(6);
  await pool.shrink();
  expect(pool.counts()).toMatchObject({ size: 2, ready: 2 });
  expect(host.removals).toBe(4);
  expect(take(3)).toBe(2);
  await ready(3);
  await pool.stop();
});

test('a pool shrinks back when nobody has asked for so many for ten minutes', async () => {
  jest.useFakeTimers();
  const { pool, take, host } = scene(2);
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      jest.advanceTimersByTime(1_000);
      for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    }
  };
  await pass(1);
  take(6);
  await pass(590);
  expect([pool.counts().ready, host.removals]).toEqual([6, 0]);
  await pass(40);
  expect([pool.counts().ready, host.removals]).toEqual([2, 4]);
  await pool.stop();
});

test('a host with room keeps more for creates that may come together, and fewer when it is short', async () => {
  const { pool, take, ready, host } = scene(2, 5);
  await ready(5);
  expect(pool.counts()).toMatchObject({ size: 5, hits: 0 });
  expect(take(5)).toBe(5);
  await ready(5);
  await pool.shrink();
  expect([pool.counts().ready, host.removals]).toEqual([2, 3]);
  take(1);
  await ready(2);
  expect(pool.counts().size).toBe(2);
  await pool.stop();
  const short = scene(2, 5);
  short.host.isRoomy = false;
  while (short.host.roomAskedFor === 0) await Bun.sleep(1);
  expect(short.pool.counts().ready).toBe(2);
  await short.pool.stop();
});
