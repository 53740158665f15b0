import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allowedProcessors, createPins } from './pins.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'atoll-pins-'));
  for (const name of ['a', 'b', 'c']) writeFileSync(join(directory, name), '');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const fileOf = (name: string) => join(directory, name);
const set = (name: string) => readFileSync(fileOf(name), 'utf8');

test('groups get processors that few others have, and one as large as the machine gets none', () => {
  const pins = createPins(fileOf, [0, 1, 2, 3]);
  pins.choose('a', 2);
  pins.choose('b', 2);
  pins.choose('c', 4);
  expect(['a', 'b', 'c'].map(set)).toEqual(['0,1', '2,3', '']);
  pins.forget('a');
  pins.choose('c', 1);
  expect(set('c')).toBe('0');
  pins.choose('c', 4);
  expect(set('c')).toBe('0,1,2,3');
});

test('one of two that share a full processor moves to a free one, an idle one does not', () => {
  const pins = createPins(fileOf, [0, 1]);
  writeFileSync(fileOf('a'), '0');
  pins.adopt('a');
  writeFileSync(fileOf('b'), '0');
  pins.adopt('b');
  const shares = new Map([
    [0, 1],
    [1, 0.1],
  ]);
  pins.spread(new Map([['a', 0.01]]), shares);
  expect([set('a'), set('b')]).toEqual(['0', '0']);
  pins.spread(new Map([['b', 0.5]]), shares);
  expect([set('a'), set('b')]).toEqual(['0', '1']);
  pins.spread(new Map([['a', 0.5]]), new Map([...shares, [1, 0.8]]));
  expect(set('a')).toBe('0');
});

test('a group without the file does without', () => {
  const pins = createPins(fileOf, [0, 1]);
  pins.choose('missing', 1);
  pins.adopt('missing');
  pins.spread(new Map([['missing', 1]]), new Map([[0, 1]]));
  expect(allowedProcessors('Name:\tx\nCpus_allowed_list:\t0-2,5\n')).toEqual([0, 1, 2, 5]);
});
