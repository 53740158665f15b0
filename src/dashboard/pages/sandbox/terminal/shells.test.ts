import { expect, test } from 'bun:test';
import { add, choose, close, nextNumber, shellsOf, split } from './shells.ts';

test('the address says what is shown, where there are such shells', () => {
  const numbers = [2, 4, 5];
  expect(shellsOf(numbers, {})).toEqual({ numbers, shown: 2, beside: undefined });
  expect(shellsOf(numbers, { shell: 4, beside: 5 })).toEqual({ numbers, shown: 4, beside: 5 });
  expect(shellsOf(numbers, { shell: 3, beside: 9 })).toEqual({ numbers, shown: 2, beside: undefined });
  // A shell can't be beside itself.
  expect(shellsOf(numbers, { shell: 4, beside: 4 })).toEqual({ numbers, shown: 4, beside: undefined });
  expect(shellsOf([], {}).shown).toBe(1);
});

test('one that is chosen is shown, and one that was beside changes places', () => {
  const shells = { numbers: [1, 2, 3], shown: 1, beside: 2 };
  expect(choose(shells, 3)).toEqual({ numbers: [1, 2, 3], shown: 3, beside: 2 });
  expect(choose(shells, 2)).toEqual({ numbers: [1, 2, 3], shown: 2, beside: 1 });
});

test('a new one has a number of its own, and leaves what is beside', () => {
  const shells = { numbers: [3, 1], shown: 1, beside: 3 };
  expect(nextNumber(shells)).toBe(4);
  expect(add(shells)).toEqual({ numbers: [3, 1, 4], shown: 4, beside: 3 });
});

test('another one is shown beside: one that there is, else a new one', () => {
  expect(split({ numbers: [1, 2, 3], shown: 1 })).toEqual({ numbers: [1, 2, 3], shown: 1, beside: 2 });
  expect(split({ numbers: [1, 2], shown: 2 })).toEqual({ numbers: [1, 2], shown: 2, beside: 1 });
  expect(split({ numbers: [5], shown: 5 })).toEqual({ numbers: [5, 6], shown: 5, beside: 6 });
});

test('when one shell ends the other one stays, and there is at least one', () => {
  const shells = { numbers: [1, 2, 3], shown: 1, beside: 2 };
  expect(close(shells, 1)).toEqual({ numbers: [2, 3], shown: 2 });
  expect(close(shells, 2)).toEqual({ numbers: [1, 3], shown: 1 });
  expect(close(shells, 3)).toEqual({ numbers: [1, 2], shown: 1 });
  expect(close({ numbers: [1, 2], shown: 1 }, 1)).toEqual({ numbers: [2], shown: 2 });
  expect(close({ numbers: [4], shown: 4 }, 4)).toEqual({ numbers: [5], shown: 5 });
});
