import { expect, test } from 'bun:test';
import { sampleOf } from './support/wall.ts';

test('a sample takes every nth, and on as many days all of a table', () => {
  const table = Array.from({ length: 10 }, (_, index) => index);
  const sample = sampleOf(table, process.env['ATTACKS'] === 'all' ? 1 : 3);
  expect(sample.length).toBe(process.env['ATTACKS'] === 'all' ? 10 : sample.length);
  expect(sample.every((value, index) => index === 0 || value > (sample[index - 1] as number))).toBe(true);
  expect(sampleOf(table, 1)).toEqual(table);
});
