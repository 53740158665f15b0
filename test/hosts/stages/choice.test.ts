import { expect, test } from 'bun:test';
import { needsPlatform, stagesFor } from './choice.ts';

const namesOf = (...args: Parameters<typeof stagesFor>) => stagesFor(...args).map(({ name }) => name);
const all = { stages: undefined, again: false };

test('what starts the platform always runs, and on this machine what ends it', () => {
  expect(namesOf('checkout', 'guest', { stages: ['client'], again: false })).toEqual(['up', 'client']);
  expect(namesOf('checkout', 'here', { stages: ['client'], again: false })).toEqual(['up', 'client', 'down']);
  expect(namesOf('package', 'guest', { stages: ['service'], again: false })).toEqual(['package', 'service']);
  expect(namesOf('checkout', 'guest', { stages: ['suites'], again: false })).toEqual(['suites']);
  expect(needsPlatform({ stages: ['suites'], again: false })).toBe(false);
});

test('a guest that goes on has started it already', () => {
  expect(namesOf('checkout', 'guest', { ...all, again: true })[0]).toBe('client');
  expect(namesOf('package', 'guest', { ...all, again: true })[0]).toBe('client');
  expect(namesOf('checkout', 'guest', all).slice(0, 2)).toEqual(['doctor', 'up']);
});
