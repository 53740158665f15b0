import { afterEach, expect, setSystemTime, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { openNative } from '../native.ts';
import { leftUntilEnd, recordOf } from './process-record.ts';

// Deadlines that survive the agent's restart.

afterEach(() => void setSystemTime());

const clock = openNative();
const started = { pid: 7, config: { cmd: 'sleep', args: [], envs: {} }, tag: undefined };
const hourMs = 3_600_000;

test.each([
  ['set forward', hourMs],
  ['set back', -hourMs],
])('a deadline holds where the clock is %s meanwhile', async (_, byMs) => {
  const record = recordOf(started, 60_000, clock);
  setSystemTime(new Date(Date.now() + byMs));
  await Bun.sleep(20);
  const leftMs = leftUntilEnd(record, clock) ?? 0;
  expect(leftMs).toBeLessThanOrEqual(59_980);
  expect(leftMs).toBeGreaterThan(30_000);
});

test('one that is over is over, and one by another clock gets no more than it had at first', () => {
  const at = (ms: number) => ({ clockMs: () => ms });
  const record = recordOf(started, 60_000, at(100_000));
  expect(leftUntilEnd(record, at(200_000))).toBe(0);
  expect(leftUntilEnd(record, at(5_000))).toBe(60_000);
  expect(leftUntilEnd(recordOf(started, undefined, at(100_000)), at(200_000))).toBeUndefined();
});

test('the clock is that of the machine, and goes on from one process to the next', () => {
  const uptimeMs = Number.parseFloat(readFileSync('/proc/uptime', 'latin1')) * 1000;
  // Excludes the time in which the machine was suspended.
  expect(clock.clockMs()).toBeLessThan(uptimeMs + 1000);
  expect(clock.clockMs()).toBeGreaterThan(performance.now());
});
