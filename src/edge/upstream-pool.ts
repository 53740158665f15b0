import type { Upstream, UpstreamHome } from './upstream.ts';

export type PoolBounds = {
  readonly idleMax: number;
  readonly idleTimeoutMs: number;
  /** Idle connections beyond these many end after `surplusTimeoutMs`. */
  readonly keptMax: number;
  readonly surplusTimeoutMs: number;
};

/** The open connections to one port of one sandbox, or to the API. */
export class UpstreamPool implements UpstreamHome {
  readonly #bounds: PoolBounds;
  readonly #all = new Set<Upstream>();
  /** Last used last: the warmest is taken first, the coldest end by time. */
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

  /** An idle connection that was used within `withinMs`. */
  take(nowMs: number, withinMs: number): Upstream | undefined {
    const upstream = this.#idle.at(-1);
    if (upstream === undefined || nowMs - upstream.idleSinceMs > Math.min(withinMs, upstream.keepMs)) return undefined;
    return this.#idle.pop();
  }

  /** Keeps a connection for the next request, or closes it where enough are kept. */
  give(upstream: Upstream, nowMs: number): void {
    upstream.user = null;
    upstream.served++;
    upstream.idleSinceMs = nowMs;
    if (this.#idle.length < this.#bounds.idleMax) this.#idle.push(upstream);
    else upstream.close();
  }

  forget(upstream: Upstream): void {
    this.#all.delete(upstream);
    const index = this.#idle.indexOf(upstream);
    if (index >= 0) this.#idle.splice(index, 1);
  }

  /** Closes connections that were idle for too long; the ones used last are kept longest. */
  closeIdle(nowMs: number): void {
    const { idleTimeoutMs, keptMax, surplusTimeoutMs } = this.#bounds;
    const surplus = this.#idle.length - keptMax;
    for (const [index, upstream] of [...this.#idle].entries()) {
      const timeoutMs = index < surplus ? surplusTimeoutMs : idleTimeoutMs;
      if (nowMs - upstream.idleSinceMs >= Math.min(timeoutMs, upstream.keepMs)) upstream.close();
    }
  }

  /** Resets every connection and what uses them. */
  cut(): void {
    for (const upstream of [...this.#all]) {
      upstream.user?.cut();
      upstream.terminate();
    }
  }
}
