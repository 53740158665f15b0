import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSegments, readSegment, segmentsIn, type StoredEntry } from './segments.ts';

let directory: string;
beforeEach(() => (directory = join(mkdtempSync(join(tmpdir(), 'atoll-segments-')), 'logs')));
afterEach(() => rmSync(join(directory, '..'), { recursive: true }));

const entry = (t: number, more: Partial<StoredEntry> = {}): StoredEntry => ({ t, l: 1, g: 'test', m: 'said', ...more });
const everything = { fromMs: 0, beforeMs: Number.POSITIVE_INFINITY, backward: false };
const entriesIn = async (name: string, span = everything) => [...(await readSegment(join(directory, name), span))];
const timesIn = async (name: string) => (await entriesIn(name)).map(({ timestampMs }) => timestampMs);
/** An entry that fills a file on its own. */
const large = (t: number) => entry(t, { m: 'x'.repeat(1 << 20) });

test('each entry has its own time, even if a clock goes back or a second run continues', async () => {
  const segments = await openSegments(directory);
  await segments.append([entry(100), entry(100), entry(50)]);
  expect(segments.lastMs).toBe(102);
  const second = await openSegments(directory);
  expect(second.lastMs).toBe(102);
  await second.append([entry(90), entry(200)]);
  expect(readdirSync(directory)).toEqual(['100.jsonl']);
  expect(await timesIn('100.jsonl')).toEqual([100, 101, 102, 103, 200]);
});

test('what is read is what was written, and what was added takes so many bytes', async () => {
  const segments = await openSegments(directory);
  const bytes = await segments.append([entry(5, { l: 3, f: { a: 'ö' } }), entry(6, { l: 99 })]);
  expect(bytes).toBe(statSync(join(directory, '5.jsonl')).size);
  const [first, second] = await entriesIn('5.jsonl');
  expect(first).toEqual({ timestampMs: 5, level: 'error', logger: 'test', message: 'said', fields: { a: 'ö' } });
  expect(second).toMatchObject({ level: 'info', fields: {} });
  expect(await entriesIn('none.jsonl')).toEqual([]);
});

test('a reader parses no more entries than it takes, and none outside of its span', async () => {
  const segments = await openSegments(directory);
  await segments.append(Array.from({ length: 100 }, (_, index) => entry(index + 1)));
  const parsed = spyOn(JSON, 'parse');
  const span = { fromMs: 20, beforeMs: 41, backward: true };
  const [first, second] = await readSegment(join(directory, '1.jsonl'), span);
  expect([first?.timestampMs, second?.timestampMs, parsed.mock.calls.length]).toEqual([40, 39, 2]);
  expect((await entriesIn('1.jsonl', span)).at(-1)?.timestampMs).toBe(20);
  expect(parsed.mock.calls.length).toBe(2 + 21);
  parsed.mockRestore();
});

test('a file that is full is followed by another, and only the newest eight stay', async () => {
  const segments = await openSegments(directory);
  for (let t = 1; t <= 8; t++) await segments.append([large(t)]);
  expect(await segmentsIn(directory)).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map(t => `${t}.jsonl`));
  await segments.append([entry(9), entry(10)]);
  await segments.append([entry(11)]);
  expect(await segmentsIn(directory)).toEqual([2, 3, 4, 5, 6, 7, 8, 9].map(t => `${t}.jsonl`));
  const second = await openSegments(directory);
  await second.append([large(12)]);
  await second.append([entry(13)]);
  expect((await segmentsIn(directory)).slice(-2)).toEqual(['9.jsonl', '13.jsonl']);
});

test('a log whose files were removed meanwhile goes on', async () => {
  const segments = await openSegments(directory);
  await segments.append([entry(1)]);
  rmSync(directory, { recursive: true });
  await segments.append([entry(2)]);
  expect(await timesIn('1.jsonl')).toEqual([2]);
});

test('files are ordered by their times, and other files are ignored', async () => {
  mkdirSync(directory);
  for (const name of ['10.jsonl', '9.jsonl', 'x.jsonl', '10.json']) writeFileSync(join(directory, name), '');
  expect(await segmentsIn(directory)).toEqual(['9.jsonl', '10.jsonl']);
  expect(await segmentsIn(join(directory, 'none'))).toEqual([]);
});

test('a line that a crash cut off is left out, and what comes next is not swallowed by it', async () => {
  await (await openSegments(directory)).append([entry(1), entry(2)]);
  appendFileSync(join(directory, '1.jsonl'), '{"t":3,"l":1,"g":"te');
  const segments = await openSegments(directory);
  expect(segments.lastMs).toBe(2);
  await segments.append([entry(1)]);
  expect(await timesIn('1.jsonl')).toEqual([1, 2]);
  expect(await timesIn('3.jsonl')).toEqual([3]);
});

test('a file in which nothing is whole still says when it began', async () => {
  mkdirSync(directory);
  writeFileSync(join(directory, '700.jsonl'), '{"t":70');
  expect((await openSegments(directory)).lastMs).toBe(700);
  writeFileSync(join(directory, '800.jsonl'), '');
  expect((await openSegments(directory)).lastMs).toBe(800);
});

test('the place in an agent’s stream is that of its last entry, whoever wrote since', async () => {
  const segments = await openSegments(directory);
  expect(segments.place).toBeUndefined();
  await segments.append([entry(1, { e: 'a', n: 7 }), entry(2)]);
  expect(segments.place).toEqual({ epoch: 'a', number: 7 });
  expect((await openSegments(directory)).place).toEqual({ epoch: 'a', number: 7 });
});

test('the end of a long file is found without its beginning', async () => {
  const segments = await openSegments(directory);
  for (let t = 1; t <= 9; t++) await segments.append([entry(t, { m: 'x'.repeat(8 << 10), e: 'a', n: t })]);
  const second = await openSegments(directory);
  expect([second.lastMs, second.place]).toEqual([9, { epoch: 'a', number: 9 }]);
});

test('only the owner can read the files', async () => {
  await (await openSegments(directory)).append([entry(1)]);
  expect([statSync(directory).mode & 0o777, statSync(join(directory, '1.jsonl')).mode & 0o777]).toEqual([0o700, 0o600]);
  expect(readFileSync(join(directory, '1.jsonl'), 'utf8')).toEndWith('\n');
});
