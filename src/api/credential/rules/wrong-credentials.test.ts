import { expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { RateLimiter } from './rate-limit.ts';
import { countWrongCredential, wrongCredentialsPerSecond } from './wrong-credentials.ts';

const wrong = new AtollError('unauthenticated', 'no');
/** How many of `tries` wrong credentials, sent from the addresses in turn, pass the limit and are answered 401. */
function letIn(
  limiter: RateLimiter,
  tries: number,
  addressOf: (index: number) => string,
  error: unknown = wrong,
): number {
  let passed = 0;
  for (let index = 0; index < tries; index++) {
    try {
      countWrongCredential(limiter, addressOf(index), error);
      passed++;
    } catch (refusal) {
      expect(refusal).toMatchObject({ code: 'rate_limited', retryAfterSeconds: 1 });
    }
  }
  return passed;
}

test('a client may send some wrong credentials at once, then so many per second; others are not delayed', () => {
  let nowMs = 0;
  const limiter = new RateLimiter(() => nowMs);
  const saved = wrongCredentialsPerSecond * 10;
  expect(letIn(limiter, 1000, () => '203.0.113.7')).toBe(saved);
  expect(letIn(limiter, 10, () => '203.0.113.8')).toBe(10);
  nowMs = 1000;
  expect(letIn(limiter, 1000, () => '203.0.113.7')).toBe(wrongCredentialsPerSecond);
});

test('addresses of one IPv6 network are one client, and a proxy in front is not the client', () => {
  const limiter = new RateLimiter(() => 0);
  const saved = wrongCredentialsPerSecond * 10;
  expect(letIn(limiter, 200, index => `2001:db8:1:2::${index.toString(16)}`)).toBe(saved);
  expect(letIn(limiter, 200, index => `198.51.100.${index}, 10.0.0.1`)).toBe(200);
  expect(letIn(limiter, 200, index => `192.0.2.${index}, 203.0.113.9, 10.0.0.1`)).toBe(saved);
});

test('clients on the machine, and other errors, are not counted', () => {
  const limiter = new RateLimiter(() => 0);
  expect(letIn(limiter, 1000, () => '')).toBe(1000);
  expect(letIn(limiter, 1000, () => '203.0.113.7', new AtollError('forbidden', 'no'))).toBe(1000);
});
