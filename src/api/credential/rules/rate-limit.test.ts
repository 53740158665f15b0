import { expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { limitsFrom } from '../../team/rules/limits.ts';
import type { Caller } from '../caller.ts';
import { chargeBody, chargeTime, limitRate, RateLimiter } from './rate-limit.ts';

test('savings are spent first, then the rate', () => {
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

test('however many callers come, an active one is not forgotten', () => {
  const limiter = new RateLimiter(() => 0);
  limiter.take('busy', 1);
  for (let i = 0; i < 30_000; i++) {
    limiter.take(`caller ${i}`, 1);
    if (i % 5_000 === 0) limiter.take('busy', 1);
  }
  expect(limiter.take('busy', 1).remaining).toBe(2);
});

test('overspending is paid back before the next request, up to the most that can be saved', () => {
  let nowMs = 0;
  const limiter = new RateLimiter(() => nowMs);
  const take = () => limiter.take('team', 2);
  // Before the first request nobody owes anything.
  limiter.spend('team', 2, 1_000);
  expect(take().remaining).toBe(19);
  limiter.spend('team', 2, 15);
  expect(take().remaining).toBe(3);
  limiter.spend('team', 2, 1_000);
  expect(refusal(take)).toMatchObject({ code: 'rate_limited', retryAfterSeconds: 11 });
  nowMs = 10_400;
  expect(refusal(take)).toBeDefined();
  nowMs = 10_500;
  expect(take().remaining).toBe(0);
});

test('a caller without a limit owes nothing', () => {
  const limiter = new RateLimiter(() => 0);
  limiter.take('team', 2);
  limiter.spend('team', 0, 1_000);
  expect(limiter.take('team', 2).remaining).toBe(18);
});

const team = { teamId: 't', limits: { requestsPerSecond: 5 } };
const key = { kind: 'team', team, actor: { kind: 'apiKey', id: 'k' } } as Caller;
const volume = { kind: 'volume', team, actor: null } as Caller;
const operatorForTeam = { kind: 'team', team, actor: { kind: 'admin', id: null } } as Caller;
const person = { kind: 'user', user: { userId: 'u' } } as Caller;
const session = (userId: string | null, isOperator: boolean) =>
  ({ kind: 'session', user: userId === null ? null : { userId }, session: { isOperator } }) as Caller;
const scene = () => ({ limitsOf: limitsFrom({ requestsPerSecond: 7 }), rateLimiter: new RateLimiter(() => 0) });

test('a team has its own rate, and a person who acts for none has the installation’s', () => {
  const deps = scene();
  expect(limitRate(deps, key)).toMatchObject({ limit: 50, remaining: 49 });
  // The holder of a token for one of the team's volumes shares the team's bucket.
  expect(limitRate(deps, volume)).toMatchObject({ limit: 50, remaining: 48 });
  expect(limitRate(deps, person)).toMatchObject({ limit: 70, remaining: 69 });
  expect(limitRate(deps, session('u', false))).toMatchObject({ limit: 70, remaining: 68 });
});

test('there is no limit for an operator, a caller not yet known, or a team whose rate is 0', () => {
  const free = { kind: 'team', team: { teamId: 'f', limits: { requestsPerSecond: 0 } } } as Caller;
  const scraper: Caller = { kind: 'scraper', actor: null };
  for (const caller of [null, operatorForTeam, session('u', true), session(null, true), free, scraper])
    expect(limitRate(scene(), caller)).toBe(null);
  // An operator's link without an account, whose operator rights have ended.
  expect(limitRate(scene(), session(null, false))).toBe(null);
});

test('a request that reads many rows counts by its time', () => {
  const deps = scene();
  limitRate(deps, key);
  chargeTime(deps, key, 0.9);
  expect(limitRate(deps, key)?.remaining).toBe(48);
  chargeTime(deps, key, 10);
  expect(limitRate(deps, key)?.remaining).toBe(37);
});

test('a long body counts as the number of requests that take as much time', () => {
  const deps = scene();
  limitRate(deps, key);
  chargeBody(deps, key, 16_383);
  expect(limitRate(deps, key)?.remaining).toBe(48);
  chargeBody(deps, key, 3 * 16_384);
  expect(limitRate(deps, key)?.remaining).toBe(44);
  // Nothing is taken from others.
  for (const caller of [null, operatorForTeam, person]) chargeBody(deps, caller, 2 ** 20);
  expect(limitRate(deps, key)?.remaining).toBe(43);
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
