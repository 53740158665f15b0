import { LRUCache } from 'lru-cache';
import { AtollError } from '../../../base/error.ts';
import type { Caller } from '../caller.ts';
import type { LimitsOf } from '../../team/rules/limits.ts';

/** What a quiet caller may save up, in seconds of its rate. */
const burstSeconds = 10;
/**
 * Callers whose use is remembered. Beyond that, those quiet for longest are forgotten: they start again with all they
 * could save.
 */
const callersMax = 10_000;

/** What a caller has left after a request. */
export type RateQuota = { limit: number; remaining: number; resetSeconds: number };

type Bucket = { tokens: number; atMs: number };

/** Token buckets, one for each caller, in the memory of this process. */
export class RateLimiter {
  readonly #buckets = new LRUCache<string, Bucket>({ max: callersMax });
  readonly #nowMs: () => number;

  /** `nowMs` never goes back: setting a wall clock would add or remove tokens. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Takes one of `what` from the bucket `name` that refills at `perSecond`. Throws `rate_limited` when it is empty. */
  take(name: string, perSecond: number, what = 'requests'): RateQuota {
    const capacity = Math.max(1, perSecond * burstSeconds);
    const nowMs = this.#nowMs();
    const before = this.#buckets.get(name) ?? { tokens: capacity, atMs: nowMs };
    const tokens = Math.min(capacity, before.tokens + ((nowMs - before.atMs) / 1000) * perSecond);
    if (tokens < 1) {
      throw new AtollError('rate_limited', `More than ${perSecond} ${what} a second were sent: wait a moment`, {
        retryAfterSeconds: Math.ceil((1 - tokens) / perSecond),
      });
    }
    this.#buckets.set(name, { tokens: tokens - 1, atMs: nowMs });
    return {
      limit: capacity,
      remaining: Math.floor(tokens - 1),
      resetSeconds: Math.ceil((capacity - tokens + 1) / perSecond),
    };
  }

  /** Takes `tokens` more for an admitted request; a debt is paid back before the next one. */
  spend(name: string, perSecond: number, tokens: number): void {
    const bucket = this.#buckets.get(name);
    if (bucket === undefined || perSecond === 0) return;
    bucket.tokens = Math.max(bucket.tokens - tokens, -perSecond * burstSeconds);
  }
}

/** Bytes of a body that count as one more request: parsing and checking them takes as long as one. */
export const bytesPerRequest = 16_384;

/** What it takes to count requests. */
export type Charging = { limitsOf: LimitsOf; rateLimiter: RateLimiter };

/** Counts an admitted request as several more, where it takes as much time. */
export function chargeRequests({ limitsOf, rateLimiter }: Charging, caller: Caller | null, requests: number): void {
  if (!isLimited(caller)) return;
  rateLimiter.spend(caller.team.teamId, limitsOf(caller.team).requestsPerSecond, requests);
}

/** Counts a long body as the number of requests that take as much time. */
export function chargeBody(deps: Charging, caller: Caller | null, bytes: number): void {
  chargeRequests(deps, caller, Math.floor(bytes / bytesPerRequest));
}

/** Milliseconds of the API's only thread that count as one more request: a team has a third of it. */
const msPerRequest = 1;

/** Counts a request by the time that it took. */
export function chargeTime(deps: Charging, caller: Caller | null, ms: number): void {
  chargeRequests(deps, caller, Math.floor(ms / msPerRequest));
}

function isLimited(caller: Caller | null): caller is Extract<Caller, { kind: 'team' | 'volume' }> {
  return (caller?.kind === 'team' || caller?.kind === 'volume') && caller.actor?.kind !== 'admin';
}

/**
 * Counts a team's request against its rate, and that of a person who acts for no team against the installation's rate.
 * Null where there is no limit; an operator has none.
 */
export function limitRate({ limitsOf, rateLimiter }: Charging, caller: Caller | null): RateQuota | null {
  const counted = isLimited(caller) ? { name: caller.team.teamId, team: caller.team } : personOf(caller);
  if (!counted) return null;
  const { requestsPerSecond } = limitsOf(counted.team);
  return requestsPerSecond > 0 ? rateLimiter.take(counted.name, requestsPerSecond) : null;
}

/** A person who acts for no team; null for an operator. */
function personOf(caller: Caller | null): { name: string; team: { limits: Record<never, never> } } | null {
  if (caller?.kind !== 'user' && caller?.kind !== 'session') return null;
  if (caller.user === null || (caller.kind === 'session' && caller.session.isOperator)) return null;
  return { name: `user ${caller.user.userId}`, team: { limits: {} } };
}
