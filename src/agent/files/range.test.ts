import { expect, test } from 'bun:test';
import { isModifiedMeanwhile, isRangeCurrent, isUnmodified, readRange } from './range.ts';

test.each([
  ['bytes=0-0', { start: 0, end: 1 }],
  ['bytes=2-4', { start: 2, end: 5 }],
  ['bytes= 2 - 4 ', { start: 2, end: 5 }],
  ['bytes=9-9', { start: 9, end: 10 }],
  ['bytes=9-10', { start: 9, end: 10 }],
  ['bytes=0-9999', { start: 0, end: 10 }],
  ['bytes=3-', { start: 3, end: 10 }],
  ['bytes=-1', { start: 9, end: 10 }],
  ['bytes=-10', { start: 0, end: 10 }],
  ['bytes=-11', { start: 0, end: 10 }],
])('%s is a part of ten bytes', (header, range) => {
  expect(readRange(header, 10)).toEqual(range);
});

test.each(['bytes=10-', 'bytes=10-12', 'bytes=-0'])('ten bytes have nothing of %s', header => {
  expect(readRange(header, 10)).toBe('unsatisfiable');
});

test('an empty file has no part', () => {
  for (const header of ['bytes=0-', 'bytes=0-0', 'bytes=-1']) expect(readRange(header, 0)).toBe('unsatisfiable');
});

test.each([
  null,
  '',
  'bytes',
  'bytes=',
  'bytes=-',
  'bytes=3',
  'bytes=4-2',
  'bytes=0-1,3-4',
  'bytes=0-1-2',
  'bytes=a-1',
])('%p asks for the whole file', header => {
  expect(readRange(header, 10)).toBeUndefined();
});

test('so does a range of another unit, or one that is no number', () => {
  for (const header of ['lines=0-1', 'Bytes 0-1', 'bytes=0x1-4', 'bytes=1-b', 'bytes=+1-4'])
    expect([header, readRange(header, 10)]).toEqual([header, undefined]);
});

const at = (seconds: number) => new Date(Date.UTC(2025, 0, 1) + seconds * 1000).toUTCString();
/** The file was changed within second 10. */
const modifiedMs = Date.UTC(2025, 0, 1) + 10_900;
const asked = (headers: Record<string, string>) => new Request('http://x/', { headers });

test('a client has the file since it last changed, by whole seconds', () => {
  const has = (seconds: number) => isUnmodified(asked({ 'if-modified-since': at(seconds) }), modifiedMs);
  expect([has(9), has(10), has(11)]).toEqual([false, true, true]);
  expect(isUnmodified(asked({}), modifiedMs)).toBe(false);
  expect(isUnmodified(asked({ 'if-modified-since': 'soon' }), modifiedMs)).toBe(false);
});

test('a condition by entity tag goes before the one by time', () => {
  const headers = { 'if-modified-since': at(11), 'if-none-match': '"a"' };
  expect(isUnmodified(asked(headers), modifiedMs)).toBe(false);
});

test('a client that wants the file unchanged hears of a change', () => {
  const changed = (seconds: number) => isModifiedMeanwhile(asked({ 'if-unmodified-since': at(seconds) }), modifiedMs);
  expect([changed(9), changed(10), changed(11)]).toEqual([true, false, false]);
  expect(isModifiedMeanwhile(asked({}), modifiedMs)).toBe(false);
});

test('a part is for who has the other parts of the same version, or does not ask', () => {
  const current = (condition: string) => isRangeCurrent(asked({ 'if-range': condition }), modifiedMs);
  expect([current(at(9)), current(at(10)), current(at(11)), current('"tag"')]).toEqual([false, true, false, false]);
  expect(isRangeCurrent(asked({}), modifiedMs)).toBe(true);
});
