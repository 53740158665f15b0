import { expect, test } from 'bun:test';
import { LogTail } from './log-tail.ts';
import type { LogEntry } from './log-tail.ts';

const entry = (ms: number, message: string): LogEntry => ({
  timestamp: new Date(ms).toISOString(),
  message,
  level: 'info',
  fields: {},
});

test('every entry is shown once, also where two are alike or a page begins within a millisecond', async () => {
  const log = [entry(1, 'a'), entry(2, 'b'), entry(2, 'b')];
  const tail = new LogTail(async ({ direction, cursor = 0 }) =>
    direction === 'backward' ? log.toReversed() : log.filter(({ timestamp }) => Date.parse(timestamp) >= cursor),
  );
  expect(await tail.read()).toBe(true);
  expect(await tail.read()).toBe(false);
  log.push(entry(2, 'b'), entry(2, 'c'), entry(3, 'd'));
  expect(await tail.read()).toBe(true);
  expect(tail.entries.map(({ message }) => message)).toEqual(['a', 'b', 'b', 'b', 'c', 'd']);
});

test('an empty log is told once', async () => {
  const tail = new LogTail(async () => []);
  expect([await tail.read(), await tail.read()]).toEqual([true, false]);
});
