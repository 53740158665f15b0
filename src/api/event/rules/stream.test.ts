import { expect, test } from 'bun:test';
import { eventStreamBounds, lateReader } from './stream.ts';

const row = (sequence: number) => ({ sequence, body: '{}' });
const sequences = (rows: { sequence: number }[]) => rows.map(({ sequence }) => sequence);

test('a row is new once, even where one with a lower sequence comes after it', () => {
  const reader = lateReader(10);
  expect(sequences(reader.fresh([row(12)], 0))).toEqual([12]);
  expect(reader.floor()).toBe(10);
  expect(sequences(reader.fresh([row(11), row(12)], 100))).toEqual([11]);
});

test('what was seen long ago is not asked for again', () => {
  const reader = lateReader(0);
  reader.fresh([row(1), row(2)], 0);
  reader.fresh([row(1), row(2), row(3)], eventStreamBounds.lateMs + 1);
  expect(reader.floor()).toBe(2);
  reader.pass();
  expect(reader.floor()).toBe(3);
});
