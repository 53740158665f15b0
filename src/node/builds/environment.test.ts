import { expect, test } from 'bun:test';
import { boundedEnvironment, environmentCharactersMax, valueOf } from './environment.ts';

const variables = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`v${index}`, '']));

test('an environment may have a thousand variables, and not one more', () => {
  expect(Object.keys(boundedEnvironment(variables(1000)))).toHaveLength(1000);
  expect(() => boundedEnvironment(variables(1001))).toThrow('more than 1000 variables');
});

test('names and values of an environment count together', () => {
  const full = { first: 'x'.repeat(environmentCharactersMax / 2), second: '' };
  full.second = 'y'.repeat(environmentCharactersMax / 2 - 'firstsecond'.length);
  expect(boundedEnvironment(full)).toBe(full);
  expect(() => boundedEnvironment({ ...full, x: '' })).toThrow(`larger than ${environmentCharactersMax} characters`);
});

test('a name that every object has is not a variable unless it is set', () => {
  expect(valueOf({ PATH: '/bin' }, 'PATH')).toBe('/bin');
  expect(valueOf({ PATH: '/bin' }, 'constructor')).toBeUndefined();
});
