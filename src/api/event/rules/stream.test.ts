import { expect, test } from 'bun:test';
import { eventStreamBounds, lateReader } from './stream.ts';

const { lateMs, lookBackMs } = eventStreamBounds;

test('events are read once, and late ones are found while they are looked for', () => {
  const reader = lateReader(10, 10, 0);
  expect(reader.floorToLookFrom(0)).toBeNull();
  reader.read([12, 14], 0);
  expect(reader.position()).toBe(14);
  expect(reader.floorToLookFrom(0)).toBe(10);
  expect(reader.unread([11, 12, 14])).toEqual([11]);
  reader.read([11], 0);
  expect(reader.position()).toBe(14);
  expect(reader.unread([11, 12, 13, 14])).toEqual([13]);
});

test('however much is read meanwhile, late events are looked for equally long, at intervals', () => {
  const reader = lateReader(0, 0, 0);
  reader.read([2], 0);
  expect(reader.floorToLookFrom(0)).toBe(0);
  for (let page = 0; page < 10; page++) reader.read([10 + page], lateMs);
  expect(reader.floorToLookFrom(lookBackMs - 1)).toBeNull();
  expect(reader.floorToLookFrom(lateMs)).toBe(0);
  reader.lookAgain();
  expect(reader.floorToLookFrom(lateMs)).toBe(0);
  expect(reader.floorToLookFrom(lateMs + lookBackMs)).toBe(2);
  expect(reader.floorToLookFrom(3 * lateMs)).toBeNull();
});

test('a reader that continues after a place also looks before it, and has read the place itself', () => {
  const reader = lateReader(20, 15, 0);
  expect(reader.floorToLookFrom(0)).toBe(15);
  expect(reader.unread([16, 20])).toEqual([16]);
});
