import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { waitFor } from '../support/process.ts';

type Options = { idleShare(): number; pause(): Promise<void> };
const { runSuites } = (await import(join(import.meta.dir, '../../scripts/test/schedule.mjs'))) as {
  runSuites(suites: string[], run: (index: number, suite: string) => Promise<void>, options: Options): Promise<void>;
};

/** A run of suites that end when the test says so, on processors that are as idle as it says. */
function begin(suites: string[], shares: number[]) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const looks: (() => void)[] = [];
  const over = runSuites(
    suites,
    (index, suite) => {
      begun.push(`${index} ${suite}`);
      return new Promise(resolve => ends.set(suite, resolve));
    },
    { idleShare: () => shares.shift() ?? 0, pause: () => new Promise(resolve => looks.push(resolve)) },
  );
  return {
    begun,
    over,
    end: (suite: string) => ends.get(suite)?.(),
    /** The time to the next look is over; resolves once the one after it is awaited. */
    async look() {
      const seen = looks.length;
      looks.at(-1)?.();
      await waitFor('the next look', () => looks.length > seen);
    },
  };
}

test('three suites run at a time in their order, and the next one begins when one ends', async () => {
  const { begun, over, end, look } = begin(['a', 'b', 'c', 'd', 'e'], [0.1, 0.14]);
  expect(begun).toEqual(['0 a', '1 b', '2 c']);
  await look();
  await look();
  expect(begun).toHaveLength(3);
  end('b');
  await waitFor('the fourth', () => begun.length === 4);
  expect(begun[3]).toBe('3 d');
  for (const suite of ['a', 'c', 'd']) end(suite);
  await waitFor('the last', () => begun.length === 5);
  end('e');
  await over;
});

test('while the processors are idle more begin, up to four', async () => {
  const suites = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  const { begun, over, end, look } = begin(suites, [0.1, 0.15, 0.9, 0.9, 0.9]);
  const afterLooks: number[] = [];
  for (let looks = 0; looks < 5; looks++) {
    await look();
    afterLooks.push(begun.length);
  }
  expect(afterLooks).toEqual([3, 4, 4, 4, 4]);
  for (const suite of ['a', 'b', 'c', 'd']) end(suite);
  await waitFor('the last', () => begun.length === 7);
  for (const suite of suites) end(suite);
  await over;
});
