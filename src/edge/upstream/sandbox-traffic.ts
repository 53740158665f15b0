import { agentPort } from '../../protocol/agent.ts';
import type { EdgeLimits } from '../limits.ts';
import type { Share } from '../../base/concurrency/share.ts';
import type { TeamTraffic } from './team-traffic.ts';
import type { KnownProtocols, Protocol } from './known-protocols.ts';
import { poolBounds, UpstreamPool } from './pool.ts';

/** What flows into one incarnation of a sandbox. */
export class SandboxTraffic {
  readonly sandboxId: string;
  readonly executionId: string;
  readonly teamId: string;
  /** Requests and upgraded connections in flight, including those whose connection is still being made. */
  readonly requests: Share;
  readonly #idle: Share;
  /** Aborts when the sandbox is cut, for requests that still wait for their connection. */
  readonly #cut = new AbortController();
  readonly #pools = new Map<number, UpstreamPool>();
  /** The pools of connections that speak HTTP/2. */
  readonly #http2Pools = new Map<number, UpstreamPool>();
  readonly #protocols: KnownProtocols;
  readonly #limits: EdgeLimits;

  constructor(
    { sandboxId, executionId }: { sandboxId: string; executionId: string },
    limits: EdgeLimits,
    team: TeamTraffic,
    protocols: KnownProtocols,
  ) {
    this.#protocols = protocols;
    this.sandboxId = sandboxId;
    this.executionId = executionId;
    this.teamId = team.teamId;
    this.#limits = limits;
    this.requests = team.requestsOfSandbox();
    this.#idle = team.idle;
  }

  get signal(): AbortSignal {
    return this.#cut.signal;
  }

  /** True when nothing is open and nothing waits. */
  get quiet(): boolean {
    return this.requests.taken === 0 && this.#pools.size === 0 && this.#http2Pools.size === 0;
  }

  /** Open connections to its ports, idle ones included. */
  get connections(): number {
    let connections = 0;
    for (const pool of this.#allPools()) connections += pool.size;
    return connections;
  }

  poolOf(port: number, isHttp2 = false): UpstreamPool {
    const pools = isHttp2 ? this.#http2Pools : this.#pools;
    const existing = pools.get(port);
    if (existing !== undefined) return existing;
    const pool = new UpstreamPool(poolBounds(this.#limits, port === agentPort, this.#idle));
    pools.set(port, pool);
    return pool;
  }

  /** The protocol of the service on a port; undefined: nobody has asked it yet. */
  protocolOf(port: number): Protocol | undefined {
    return this.#protocols.of(this.executionId, port);
  }

  /** A service has shown what it speaks; undefined: not the remembered protocol. */
  heard(port: number, protocol: Protocol | undefined): void {
    this.#protocols.heard(this.executionId, port, protocol);
  }

  /** Closes connections that have been idle for too long and forgets empty pools. */
  sweep(nowMs: number): void {
    for (const pools of [this.#pools, this.#http2Pools])
      for (const [port, pool] of pools) {
        pool.closeIdle(nowMs);
        // A request that still dials holds its pool.
        if (pool.size === 0 && this.requests.taken === 0) pools.delete(port);
      }
  }

  /** Resets every connection to the sandbox, and every client in the middle of one of its answers. */
  cut(): void {
    this.#cut.abort();
    for (const pool of this.#allPools()) pool.cut();
  }

  #allPools(): UpstreamPool[] {
    return [...this.#pools.values(), ...this.#http2Pools.values()];
  }
}
