import { expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { RateLimiter } from './rate-limit.ts';

test('what was saved up is spent first, then the rate', () => {
  let nowMs = 0;
  const limiter = new RateLimiter(() => nowMs);
  const take = () => limiter.take('team', 2);
  expect(take()).toEqual({ limit: 20, remaining: 19, resetSeconds: 1 });
  for (let i = 1; i < 20; i++) expect(take().remaining).toBe(19 - i);
  const refused = refusal(take);
  expect(refused).toMatchObject({ code: 'rate_limited', retryAfterSeconds: 1 });
  nowMs = 400;
  expect(refusal(take)).toBeDefined();
  nowMs = 500;
  expect(take().remaining).toBe(0);
  expect(refusal(take)).toBeDefined();
  nowMs = 1_000_000;
  expect(take().remaining).toBe(19);
});

test('a slow rate says how long to wait, and each team has its own', () => {
  const limiter = new RateLimiter(() => 0);
  for (let i = 0; i < 1; i++) limiter.take('a', 0.1);
  expect(refusal(() => limiter.take('a', 0.1))?.retryAfterSeconds).toBe(10);
  expect(limiter.take('b', 0.1)).toMatchObject({ remaining: 0 });
});

test('however many callers come, one that is at work is not forgotten', () => {
  const limiter = new RateLimiter(() => 0);
  limiter.take('busy', 1);
  for (let i = 0; i < 30_000; i++) {
    limiter.take(`caller ${i}`, 1);
    if (i % 5_000 === 0) limiter.take('busy', 1);
  }
  expect(limiter.take('busy', 1).remaining).toBe(2);
});

function refusal(take: () => unknown): AtollError | undefined {
  try {
    take();
    return undefined;
  } catch (error) {
    if (error instanceof AtollError) return error;
    throw error;
  }
}
