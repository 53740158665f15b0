import { expect, test } from 'bun:test';
import { createTurns, windowMs } from './turns.ts';

const setUp = () => {
  const windows: (() => void)[] = [];
  const turns = createTurns(next => windows.push(next));
  const held = new Set<string>();
  const channel = (name: string) => ({ hold: () => void held.add(name), letGo: () => void held.delete(name) });
  return { turns, held, channel, windows, nextWindow: () => windows.splice(0).forEach(next => next()) };
};

test('a sandbox that is alone has all of the time', () => {
  const { turns, held, channel } = setUp();
  const one = turns.share();
  for (let i = 0; i < 100; i++) one.charge(windowMs, channel('one'));
  expect([...held]).toEqual([]);
});

test('with others, one that has had its part is held until the next window, and they are not', () => {
  const { turns, held, channel, nextWindow } = setUp();
  const [greedy, modest] = [turns.share(), turns.share()];
  const cause = channel('greedy');
  modest.charge(1, channel('modest'));
  greedy.charge(windowMs / 2, cause);
  expect([...held]).toEqual([]);
  greedy.charge(1, cause);
  greedy.charge(1, channel('greedy, another'));
  expect([...held]).toEqual(['greedy', 'greedy, another']);
  modest.charge(1, channel('modest'));
  nextWindow();
  expect([...held]).toEqual([]);
  // The others had work in the last window, and may have some again.
  greedy.charge(windowMs, cause);
  expect([...held]).toEqual(['greedy']);
});

test('the part is the smaller the more there are', () => {
  const { turns, held, channel } = setUp();
  const shares = Array.from({ length: 10 }, () => turns.share());
  for (const share of shares) share.charge(1, channel('none'));
  shares[0]?.charge(windowMs / 10, channel('greedy'));
  expect([...held]).toEqual(['greedy']);
});

test('nothing is planned while nobody has work', () => {
  const { turns, windows, nextWindow, channel } = setUp();
  turns.share().charge(1, channel('one'));
  expect(windows.length).toBe(1);
  nextWindow();
  nextWindow();
  expect(windows.length).toBe(0);
});
