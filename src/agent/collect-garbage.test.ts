import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { collectGarbageAfterWork } from './collect-garbage.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** An agent whose collections take no time, and which counts how often it gave memory back. */
function agent() {
  const state = { collected: 0, givenBack: 0, usedMs: 0 };
  const worked = collectGarbageAfterWork({
    collect: () => void state.collected++,
    giveBack: () => void state.givenBack++,
    usedMs: () => state.usedMs,
  });
  return { state, worked };
}

test('garbage is collected twice after work, once for all of it, and then no more', () => {
  const { state, worked } = agent();
  jest.advanceTimersByTime(60_000);
  expect(state.collected).toBe(0);
  for (let time = 0; time < 3; time++) worked();
  state.usedMs = 900;
  jest.advanceTimersByTime(5_000);
  expect(state).toMatchObject({ collected: 1, givenBack: 0 });
  jest.advanceTimersByTime(60_000);
  expect(state).toMatchObject({ collected: 2, givenBack: 1 });
  worked();
  jest.advanceTimersByTime(60_000);
  expect(state).toMatchObject({ collected: 4, givenBack: 2 });
});

test('garbage of an answer that outlasts a collection is collected after the answer', () => {
  const { state, worked } = agent();
  worked();
  jest.advanceTimersByTime(5_000);
  state.usedMs += 100;
  jest.advanceTimersByTime(500);
  expect(state).toMatchObject({ collected: 2, givenBack: 1 });
  jest.advanceTimersByTime(60_000);
  expect(state).toMatchObject({ collected: 4, givenBack: 2 });
});
