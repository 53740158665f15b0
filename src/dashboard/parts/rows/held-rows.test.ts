import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { usedHook } from '../../../../test/support/hook.ts';
import { useHeldRows } from './held-rows.ts';

const events = new EventTarget();
beforeEach(() => {
  jest.useFakeTimers();
  Object.assign(globalThis, {
    addEventListener: events.addEventListener.bind(events),
    removeEventListener: events.removeEventListener.bind(events),
  });
});
afterEach(() => jest.useRealTimers());

/** Changing rows, and what is shown of them. */
async function rows(...first: string[]) {
  let latest: readonly string[] = first;
  const used = await usedHook(() => useHeldRows(latest, row => row));
  const shown = () => used.current().rows.map(({ row, isGone }) => (isGone ? `(${row})` : row));
  return {
    ...{ used, shown, waiting: () => used.current().waiting, hold: () => used.current().hold },
    change(...next: string[]) {
      latest = next;
      return used.again();
    },
    pass: (ms: number) => used.act(() => void jest.advanceTimersByTime(ms)),
    happens: (name: string) => used.act(() => void events.dispatchEvent(new Event(name))),
    [Symbol.asyncDispose]: () => used[Symbol.asyncDispose](),
  };
}

test('rows are the latest ones while nobody points at them', async () => {
  await using list = await rows('a', 'b');
  await list.change('c', 'a');
  expect([list.shown(), list.waiting()]).toEqual([['c', 'a'], 0]);
});

test('rows stay in their places while the pointer moves, and a while after', async () => {
  await using list = await rows('a', 'b');
  await list.used.act(() => list.hold().onPointerMove());
  await list.change('c', 'a');
  expect([list.shown(), list.waiting()]).toEqual([['a', '(b)'], 1]);
  await list.pass(1_000);
  await list.used.act(() => list.hold().onPointerMove());
  await list.pass(1_499);
  expect(list.shown()).toEqual(['a', '(b)']);
  await list.pass(1);
  expect([list.shown(), list.waiting()]).toEqual([['c', 'a'], 0]);
});

test('rows stay in their places while the page is scrolled', async () => {
  await using list = await rows('a', 'b');
  await list.happens('scroll');
  await list.change('b');
  expect(list.shown()).toEqual(['(a)', 'b']);
  await list.pass(1_500);
  expect(list.shown()).toEqual(['b']);
});

for (const end of ['pointerup', 'pointercancel'])
  test(`rows stay for as long as a button is down, until ${end}`, async () => {
    await using list = await rows('a', 'b');
    await list.used.act(() => list.hold().onPointerMove());
    await list.used.act(() => list.hold().onPointerDown());
    await list.change('b');
    await list.pass(60_000);
    expect(list.shown()).toEqual(['(a)', 'b']);
    await list.happens(end);
    await list.pass(1_499);
    expect(list.shown()).toEqual(['(a)', 'b']);
    // Once released, it does not affect a later one.
    await list.happens(end === 'pointerup' ? 'pointercancel' : 'pointerup');
    await list.pass(1);
    expect(list.shown()).toEqual(['b']);
  });

test('what is no longer shown listens to nothing', async () => {
  const list = await rows('a');
  await list.happens('scroll');
  await list[Symbol.asyncDispose]();
  expect(jest.getTimerCount()).toBe(0);
  events.dispatchEvent(new Event('scroll'));
  expect(jest.getTimerCount()).toBe(0);
});
