import { expect, test } from 'bun:test';
import { createJournal } from './journal.ts';

test('a reader gets appended items and waits for more, and handled items are forgotten', async () => {
  const journal = createJournal<string>(10);
  journal.append('a');
  const first = await journal.read(null, 0);
  expect(first).toMatchObject({ items: ['a'], isGap: false });
  // The reader has not yet asked beyond it: a reader that comes back without its place hears it again.
  expect((await journal.read(null, 0)).items).toEqual(['a']);
  const waited = journal.read(first.next, 10_000);
  journal.append('b');
  const second = await waited;
  expect(second.items).toEqual(['b']);
  expect(journal.readUpTo()).toBe(1);
  expect((await journal.read(null, 0)).items).toEqual(['b']);
  expect((await journal.read(second.next, 1)).items).toEqual([]);
  expect(journal.readUpTo()).toBe(2);
});

test('a cursor of another journal, or one before the kept items, is a gap', async () => {
  const other = createJournal<number>(2);
  const journal = createJournal<number>(2);
  const start = journal.end();
  for (let number = 0; number < 20; number++) journal.append(number);
  expect((await journal.read(other.end(), 0)).isGap).toBe(true);
  const page = await journal.read(start, 0);
  expect(page.isGap).toBe(true);
  expect(page.items.at(-1)).toBe(19);
  expect(page.items.length).toBeLessThanOrEqual(4);
});

test('a reader that stops waiting gets an empty page', async () => {
  const journal = createJournal<number>(2);
  const stop = new AbortController();
  const waited = journal.read(null, 60_000, stop.signal);
  stop.abort();
  expect((await waited).items).toEqual([]);
});
