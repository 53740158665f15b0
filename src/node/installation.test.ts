import { expect, test } from 'bun:test';
import { chooseNumber } from './installation.ts';

const taken = ['/a', '/b', '/c'];
const host = { isSeen: (owner: string) => owner === '/a', hasProcesses: (number: number) => number === 1 };

test('an installation keeps its number, and a new one takes a free one', () => {
  expect(chooseNumber(taken, '/b', host)).toBe(1);
  expect(chooseNumber(['/a', undefined, '/c'], '/d', host)).toBe(1);
});

test('a number whose directory is not seen here is taken last, and not where processes of it run', () => {
  expect(chooseNumber(taken, '/d', host)).toBe(2);
  expect(chooseNumber(taken, '/d', { ...host, hasProcesses: () => true })).toBeUndefined();
  expect(chooseNumber(taken, '/d', { ...host, isSeen: () => true })).toBeUndefined();
});
