import { expect, test } from 'bun:test';
import { createOutputBudget } from './budget.ts';

/** A budget on a clock that the test sets, milliseconds. */
function budgetOf() {
  let atMs = 5000;
  const budget = createOutputBudget(() => atMs);
  const spend = (lines: number, bytes = 0) => {
    for (let line = 0; line < lines; line++) budget.spend(bytes);
  };
  const isOpenAfter = (ms: number) => {
    atMs += ms;
    return budget.isOpen();
  };
  return { spend, isOpenAfter };
}

test('some hundred lines fit at once, and no more', () => {
  const { spend, isOpenAfter } = budgetOf();
  spend(499);
  expect(isOpenAfter(0)).toBe(true);
  spend(1);
  expect(isOpenAfter(0)).toBe(false);
});

test('it opens again when fifty lines fit, so that gaps are few', () => {
  const { spend, isOpenAfter } = budgetOf();
  spend(500);
  expect([isOpenAfter(0), isOpenAfter(499), isOpenAfter(1)]).toEqual([false, false, true]);
  spend(49);
  expect(isOpenAfter(0)).toBe(true);
});

test('an unused budget is not saved up', () => {
  const { spend, isOpenAfter } = budgetOf();
  isOpenAfter(3_600_000);
  spend(500);
  expect(isOpenAfter(0)).toBe(false);
});

test('few long lines use it up too, and their bytes come back', () => {
  const { spend, isOpenAfter } = budgetOf();
  spend(1, (256 << 10) - 1);
  expect(isOpenAfter(0)).toBe(true);
  spend(1, 1);
  expect(isOpenAfter(0)).toBe(false);
  expect(isOpenAfter(1)).toBe(true);
  spend(1, 64 << 10);
  expect([isOpenAfter(0), isOpenAfter(900), isOpenAfter(100)]).toEqual([false, false, true]);
  isOpenAfter(3_600_000);
  spend(1, 256 << 10);
  expect(isOpenAfter(0)).toBe(false);
});
