import { expect, test } from 'bun:test';
import { createLog } from '../../../../base/telemetry/log.ts';
import { slotOf } from '../../../layout.ts';
import { createRootsAhead } from './roots-ahead.ts';
import type { Standby } from '../standby.ts';

const resources = { cpuCount: 2, memoryMiB: 512, diskMiB: 1024 };
const asked = (layers: string[], changes: Partial<typeof resources> = {}) => ({
  resources: { ...resources, ...changes },
  layers,
});

/** A pool of this many standby sandboxes without a root. */
function scene(size: number) {
  const happened: string[] = [];
  const logged: string[] = [];
  const host = { isStarting: false, fails: false, gate: Promise.resolve(), waysGiven: 0 };
  const removals: ((digest: string) => Promise<void>)[] = [];
  const ends: (() => void)[] = [];
  const ready = new Set<Standby>();
  const standby = (number: number): Standby => {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    ends.push(resolve);
    return { processes: { slot: slotOf(0, number), pid: number, ended }, layers: null } as unknown as Standby;
  };
  for (let number = 0; number < size; number++) ready.add(standby(number));
  const pool = {
    size: () => size,
    resources,
    driver: {
      async giveRoot(_: unknown, pid: number, { layers, disk }: { layers: string[]; disk: string }) {
        happened.push(`root ${pid} ${layers.join('+')} ${disk}`);
        await host.gate;
        if (host.fails) throw new Error('no root');
      },
    },
    log: createLog('debug', line => logged.push(line)),
    ready,
    isStarting: () => host.isStarting,
    giveWay: () => Promise.resolve(void host.waysGiven++),
    discard: (one: Standby) => Promise.resolve(void (happened.push(`discard ${one.processes.pid}`), ready.delete(one))),
    release: (one: Standby) => Promise.resolve(void happened.push(`release ${one.processes.pid}`)),
    changed: () => happened.push('changed'),
  };
  const layers = {
    mount: (digest: string) => Promise.resolve(`/${digest}`),
    beforeRemoval: (letGo: (digest: string) => Promise<void>) => void removals.push(letGo),
  };
  const ahead = createRootsAhead(
    { layers, layout: { mounts: '/mounts' } } as unknown as Parameters<typeof createRootsAhead>[0],
    pool as unknown as Parameters<typeof createRootsAhead>[1],
  );
  const settled = async () => {
    for (let turn = 0; turn < 100; turn++) await Promise.resolve();
  };
  const rooted = () => [...ready].filter(one => one.layers !== null).map(one => one.layers);
  const ask = (times: number, ...root: string[]) => {
    for (let time = 0; time < times; time++) ahead.choose(asked(root));
  };
  return { ahead, happened, logged, host, ready, settled, rooted, ask, ends, letGo: (of: string) => removals[0]?.(of) };
}

test('the root that creates ask for is put in place ahead, in all but one of the pool', async () => {
  const it = scene(4);
  it.ask(8, 'l1', 'l2');
  it.ahead.prepare();
  await it.settled();
  expect(it.rooted()).toEqual(Array.from({ length: 3 }, () => ['l1', 'l2']));
  expect(it.ready.size).toBe(4);
  expect(it.happened.slice(0, 2)).toEqual(['root 0 /l1+/l2 /mounts/s0', 'changed']);
  expect(it.happened).toHaveLength(6);
  expect(it.host.waysGiven).toBe(4);
  expect(it.ahead.underWay()).toBe(0);
});

test('a create gets the one that has its root, else one that has none, and none of another disk', async () => {
  const it = scene(3);
  it.ask(6, 'l1');
  it.ahead.prepare();
  await it.settled();
  expect(it.ahead.choose(asked(['l1']))?.layers).toEqual(['l1']);
  expect(it.ahead.choose(asked(['l2']))?.layers).toBeNull();
  expect(it.ahead.choose(null)?.layers).toBeNull();
  // It gets another size before its root.
  for (const size of ['cpuCount', 'memoryMiB'])
    expect(it.ahead.choose(asked(['l1'], { [size]: 1 }))?.layers).toBeNull();
  expect(it.ahead.choose(asked(['l1'], { diskMiB: 1 }))).toBeUndefined();
  for (const one of it.ready) if (one.layers === null) it.ready.delete(one);
  expect(it.ahead.choose(asked(['l2']))).toBeUndefined();
});

test('nothing is prepared for other sizes, while standby sandboxes are started, and after the end', async () => {
  const others = scene(3);
  for (let time = 0; time < 6; time++) others.ahead.choose(asked(['l1'], { memoryMiB: 1024 }));
  others.ahead.prepare();
  await others.settled();
  expect(others.happened).toEqual([]);
  const it = scene(3);
  it.ask(6, 'l1');
  it.host.isStarting = true;
  it.ahead.prepare();
  await it.settled();
  expect(it.happened).toEqual([]);
  it.host.isStarting = false;
  await it.ahead.stop();
  it.ahead.prepare();
  await it.settled();
  expect(it.happened).toEqual([]);
});

test('one at a time is out of the pool for its root, and the end waits for that', async () => {
  const it = scene(4);
  it.ask(8, 'l1');
  const { promise, resolve: open } = Promise.withResolvers<void>();
  it.host.gate = promise;
  it.ahead.prepare();
  it.ahead.prepare();
  await it.settled();
  expect([it.ahead.underWay(), it.ready.size, it.happened.length]).toEqual([1, 3, 1]);
  const stopped = it.ahead.stop();
  await it.settled();
  expect(Bun.peek.status(stopped)).toBe('pending');
  open();
  await stopped;
  expect([it.ahead.underWay(), it.ready.size, it.rooted().length]).toEqual([0, 4, 1]);
});

test('a root that can’t be put in place is logged, and not tried again', async () => {
  const it = scene(3);
  it.ask(6, 'l1');
  it.host.fails = true;
  it.ahead.prepare();
  await it.settled();
  expect(it.happened).toEqual(['root 0 /l1 /mounts/s0', 'release 0', 'changed']);
  expect(it.logged).toHaveLength(1);
  expect(JSON.parse(it.logged[0] ?? '')).toMatchObject({ level: 'warn', error: 'no root' });
  expect(it.ready.size).toBe(2);
});

test('one that ends while it gets its root is not left in the pool', async () => {
  const it = scene(3);
  it.ask(6, 'l1');
  it.host.gate = Promise.resolve().then(() => it.ends[0]?.());
  it.ahead.prepare();
  await it.settled();
  expect(it.happened).toContain('discard 0');
  expect(it.happened).not.toContain('discard 1');
});

test('a standby sandbox whose root is no longer the usual one is replaced', async () => {
  const it = scene(3);
  it.ask(6, 'l1');
  it.ahead.prepare();
  await it.settled();
  it.ask(6, 'l2');
  it.ahead.prepare();
  await it.settled();
  expect(it.happened.at(-1)).toBe('discard 0');
  it.ahead.prepare();
  await it.settled();
  expect(it.happened.at(-1)).toBe('discard 1');
  it.ahead.prepare();
  await it.settled();
  expect(it.rooted()).toEqual([['l2']]);
});

test('removing a layer ends the standby sandboxes that use it', async () => {
  const it = scene(3);
  it.ask(6, 'l1', 'l2');
  it.ahead.prepare();
  await it.settled();
  await it.letGo('l3');
  expect(it.ready.size).toBe(3);
  await it.letGo('l2');
  expect(it.ready.size).toBe(1);
  it.happened.length = 0;
  it.ahead.prepare();
  await it.settled();
  expect(it.happened).toEqual([]);
});

test('removing a layer waits while it is being put in place, and then nobody keeps it', async () => {
  const it = scene(3);
  it.ask(6, 'l1');
  const { promise, resolve: open } = Promise.withResolvers<void>();
  it.host.gate = promise;
  it.ahead.prepare();
  await it.settled();
  const gone = it.letGo('l1');
  await it.settled();
  expect(gone && Bun.peek.status(gone)).toBe('pending');
  open();
  await gone;
  expect(it.rooted()).toEqual([]);
  expect(it.ahead.underWay()).toBe(0);
});
