import { expect, test } from 'bun:test';
import {
  mayBecome,
  nextStates,
  occupyingStates,
  sandboxOperations,
  sandboxStates,
  shownState,
  statesShownAs,
  verdictOn,
} from './state.ts';

test('every state but the last leads on, and every one can be killed', () => {
  for (const state of sandboxStates) {
    if (state === 'killing') expect(nextStates[state]).toEqual([]);
    else expect(mayBecome(state, 'killing')).toBe(true);
    expect(mayBecome(state, state)).toBe(false);
  }
  expect(mayBecome('running', 'paused')).toBe(false);
  expect(mayBecome('paused', 'running')).toBe(false);
});

test('no operation finds hidden states, and shown ones can be read and killed', () => {
  for (const state of sandboxStates) {
    const isShown = shownState(state) !== null;
    for (const operation of ['read', 'kill'] as const)
      expect(verdictOn(operation, state)).toBe(isShown ? 'allowed' : 'not_found');
    for (const operation of sandboxOperations) {
      if (state === 'starting') expect(verdictOn(operation, state)).toBe('not_found');
      if (state === 'killing') expect(['not_found', 'conflict']).toContain(verdictOn(operation, state));
    }
  }
  expect([...statesShownAs('running'), ...statesShownAs('paused')].toSorted()).toEqual(
    sandboxStates.filter(state => shownState(state)).toSorted(),
  );
});

test('an allowed operation leads to a state that may follow', () => {
  const leadsTo = {
    kill: 'killing',
    pause: 'pausing',
    resume: 'resuming',
    fork: 'snapshotting',
    snapshot: 'snapshotting',
  } as const;
  let seen = 0;
  for (const [operation, next] of Object.entries(leadsTo)) {
    for (const state of sandboxStates) {
      if (verdictOn(operation as keyof typeof leadsTo, state) !== 'allowed') continue;
      expect({ operation, state, may: mayBecome(state, next) }).toEqual({ operation, state, may: true });
      seen++;
    }
  }
  expect(seen).toBeGreaterThan(8);
  expect(occupyingStates).not.toContain('paused');
});
