import { expect, test } from 'bun:test';
import { Connections } from './connections.ts';

const settled = async (promise: Promise<void>) =>
  (await Promise.race([promise.then(() => true), Bun.sleep(5)])) === true;

test('a request beyond the limit of a page waits, says so, and begins when another one ends', async () => {
  const connections = new Connections(2);
  const [first, second, third] = [1, 2, 3].map(() => ({ isShown: () => true }));
  const stop = new AbortController();
  let waits = 0;
  await connections.hold(first!, stop.signal);
  await connections.hold(first!, stop.signal);
  await connections.hold(second!, new AbortController().signal);
  const last = connections.hold(third!, new AbortController().signal, () => waits++);
  expect([await settled(last), waits]).toEqual([false, 1]);
  stop.abort();
  expect(await settled(last)).toBe(true);
});

test('a visible request takes the place of a hidden one, which waits until it is shown', async () => {
  const connections = new Connections(1);
  const shown = new Set(['a']);
  const signal = new AbortController().signal;
  const request = (name: string) => {
    const own = {
      isShown: () => shown.has(name),
      giveWay: () => void Promise.resolve().then(() => connections.end(own)),
    };
    return own;
  };
  const [a, b, c] = [request('a'), request('b'), request('c')];
  await connections.hold(a, signal);
  const hidden = connections.hold(c, signal);
  const next = connections.hold(b, signal);
  expect([await settled(hidden), await settled(next)]).toEqual([false, false]);
  shown.clear();
  shown.add('b');
  connections.look();
  expect([await settled(hidden), await settled(next)]).toEqual([false, true]);
  connections.end(b);
  expect(await settled(hidden)).toBe(true);
});

test('a request that is given up while it waits is released', async () => {
  const connections = new Connections(0);
  const stop = new AbortController();
  const waiting = connections.hold({ isShown: () => true }, stop.signal);
  expect(await settled(waiting)).toBe(false);
  stop.abort();
  expect(await settled(waiting)).toBe(true);
});
