import { expect, test } from 'bun:test';
import type { SandboxLogEntry } from '../../../protocol/logs.ts';
import { pageOf } from './logs.ts';

const entries = (['info', 'debug', 'error', 'warn', 'info'] as const).map((level, index): SandboxLogEntry => ({
  timestampMs: 10 * (index + 1),
  level,
  logger: index === 3 ? 'network' : 'process',
  message: `Line ${index + 1}`,
  fields: {},
}));
const times = (query: Partial<Parameters<typeof pageOf>[1]>) =>
  pageOf(entries, { backward: false, limit: 100, ...query }).map(({ timestampMs }) => timestampMs);

test('a log in the store answers the pages that its machine would', () => {
  expect(times({})).toEqual([10, 20, 30, 40, 50]);
  expect(times({ limit: 2 })).toEqual([10, 20]);
  expect(times({ backward: true, limit: 2 })).toEqual([50, 40]);
  // From one time on, and before another one.
  expect(times({ fromMs: 20, beforeMs: 40 })).toEqual([20, 30]);
  expect(times({ minimum: 'warn' })).toEqual([30, 40]);
  expect(times({ logger: 'network' })).toEqual([40]);
  expect(times({ search: 'LINE 3' })).toEqual([30]);
  // The query stays unchanged.
  expect(entries.map(({ timestampMs }) => timestampMs)).toEqual([10, 20, 30, 40, 50]);
});
