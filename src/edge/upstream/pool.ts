import type { Share } from '../../base/concurrency/share.ts';
import type { EdgeLimits } from '../limits.ts';
import type { Upstream, UpstreamHome } from './upstream.ts';

/** How many connections a pool keeps, and for how long. */
type PoolBounds = {
  readonly idleMax: number;
  /** The share of idle connections that all pools have together. */
  readonly idleShare: Share;
  readonly idleTimeoutMs: number;
  /** Idle connections beyond this number end after `surplusTimeoutMs`. */
  readonly keptMax: number;
  readonly surplusTimeoutMs: number;
};

/** How to keep connections to our own servers (the API, the agents), and to services in a sandbox. */
export function poolBounds(limits: EdgeLimits, own: boolean, idleShare: Share): PoolBounds {
  return {
    idleMax: limits.idleUpstreamsPerPortMax,
    idleShare,
    idleTimeoutMs: own ? limits.idleOwnUpstreamTimeoutMs : limits.idleUpstreamTimeoutMs,
    keptMax: limits.idleOwnUpstreamsKept,
    surplusTimeoutMs: limits.idleUpstreamTimeoutMs,
  };
}

/** The open connections to one port of one sandbox, or to the API. */
export class UpstreamPool implements UpstreamHome {
  readonly #bounds: PoolBounds;
  readonly #all = new Set<Upstream>();
  /** Last used comes last: the warmest is taken first, the coldest times out first. */
  readonly #idle: Upstream[] = [];

  constructor(bounds: PoolBounds) {
    this.#bounds = bounds;
  }

  /** Open connections, idle ones included. */
  get size(): number {
    return this.#all.size;
  }

  add(upstream: Upstream): void {
    this.#all.add(upstream);
  }

  /** An idle connection that was used within `withinMs` and accepts another request. */
  take(nowMs: number, withinMs: number): Upstream | undefined {
    for (let upstream = this.#idle.at(-1); upstream !== undefined; upstream = this.#idle.at(-1)) {
      if (nowMs - upstream.idleSinceMs > Math.min(withinMs, upstream.keepMs)) return undefined;
      this.#idle.pop();
      this.#bounds.idleShare.give();
      if (!upstream.ended) return upstream;
      upstream.close();
    }
    return undefined;
  }

  /** Keeps a connection for the next request, or closes it if enough are kept. */
  give(upstream: Upstream, nowMs: number): void {
    upstream.user = null;
    upstream.served++;
    upstream.idleSinceMs = nowMs;
    const { idleMax, idleShare } = this.#bounds;
    if (this.#idle.length >= idleMax || idleShare.full !== null) return upstream.close();
    idleShare.take();
    this.#idle.push(upstream);
  }

  forget(upstream: Upstream): void {
    this.#all.delete(upstream);
    const index = this.#idle.indexOf(upstream);
    if (index < 0) return;
    this.#idle.splice(index, 1);
    this.#bounds.idleShare.give();
  }

  /** Closes connections that have been idle for too long; keeps the most recently used ones longest. */
  closeIdle(nowMs: number): void {
    const { idleTimeoutMs, keptMax, surplusTimeoutMs } = this.#bounds;
    const surplus = this.#idle.length - keptMax;
    for (const [index, upstream] of [...this.#idle].entries()) {
      const timeoutMs = index < surplus ? surplusTimeoutMs : idleTimeoutMs;
      if (nowMs - upstream.idleSinceMs >= Math.min(timeoutMs, upstream.keepMs)) upstream.close();
    }
  }

  /** Resets every connection and its user. */
  cut(): void {
    for (const upstream of [...this.#all]) {
      upstream.user?.cut();
      upstream.terminate();
    }
  }
}
