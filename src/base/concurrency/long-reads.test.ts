import { expect, test } from 'bun:test';
import { turnsOfReads } from './long-reads.ts';

/** Reads of one owner, a millisecond each, and their outcomes. */
function many(inTurn: ReturnType<typeof turnsOfReads>, owner: string, count: number) {
  const ended: number[] = [];
  const read = (index: number) => {
    for (const startedAt = performance.now(); performance.now() - startedAt < 1;);
    ended.push(index);
  };
  const all = Array.from({ length: count }, (_, index) => inTurn(owner, () => read(index)));
  return { ended, all: Promise.all(all) };
}

test('an owner that reads again and again delays no other reader', async () => {
  const inTurn = turnsOfReads();
  const busy = many(inTurn, 'busy', 100);
  expect(await inTurn('other', () => 'read')).toBe('read');
  expect(busy.ended.length).toBeLessThan(10);
  await busy.all;
  expect(busy.ended.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, index) => index));
});

test('other work comes between two reads', async () => {
  const busy = many(turnsOfReads(), 'busy', 100);
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(busy.ended.length).toBeLessThan(20);
  await busy.all;
});

test('a read that fails says so, and the next one begins', async () => {
  const inTurn = turnsOfReads();
  const failed = Array.from({ length: 5 }, () =>
    inTurn('s', () => {
      throw new Error('no disk');
    }),
  );
  expect((await Promise.allSettled(failed)).map(({ status }) => status)).toEqual(failed.map(() => 'rejected'));
  expect(await inTurn('s', async () => 1)).toBe(1);
});
