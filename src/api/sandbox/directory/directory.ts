import { LRUCache } from 'lru-cache';
import type { ClosedExecution, Route, RoutesPage, RoutesCursor } from '../../../protocol/directory.ts';
import type { SandboxState } from '../../../protocol/state.ts';
import { closedChange, createEdges } from './edges.ts';
import type { SandboxExecution, SandboxRecord } from '../record.ts';

/**
 * What the edge must know to bring a request into a sandbox, and its team. `running` also while a snapshot is taken;
 * `paused` also while it is being resumed: waking it waits for that, and for the end of a move.
 */
export type SandboxRoute = Route;

/** Ended executions to remember; far more than can end while a row that was read is on its way. */
const endedMax = 10_000;

/**
 * Where every sandbox is, in memory: read for each request at the edge, loaded at start, and changed by the code that
 * changes the rows. The database stays the truth.
 */
export class SandboxDirectory {
  readonly #routes = new Map<string, SandboxRoute>();
  /** Closed executions: a row that was read before its execution ended must not bring that back. */
  readonly #ended = new LRUCache<string, true>({ max: endedMax });
  readonly #edges = createEdges();
  readonly #tokensOf: (sandbox: SandboxRecord) => { accessToken: string | null; trafficToken: string | null };

  constructor(tokensOf: (sandbox: SandboxRecord) => { accessToken: string | null; trafficToken: string | null }) {
    this.#tokensOf = tokensOf;
  }

  /** Any sandbox that clients can see. */
  find(sandboxId: string): SandboxRoute | undefined {
    return this.#routes.get(sandboxId);
  }

  /** The changes for the edge; see `DirectoryProtocol.changes`. */
  changes(after: RoutesCursor | null, waitMs: number, signal?: AbortSignal): Promise<RoutesPage> {
    return this.#edges.follow(
      after,
      waitMs,
      () => [...this.#routes.values()].filter(({ state }) => state === 'running'),
      signal,
    );
  }

  /**
   * Resolves when every connection to what was closed until now is cut. Await it before ending or stopping the
   * processes.
   */
  settled(): Promise<void> {
    return this.#edges.settled();
  }

  /** Call it when the edge, and so its connections, are gone: then nothing waits for it. */
  edgeGone(): void {
    this.#edges.gone();
  }

  /** Every sandbox that it knows. */
  ids(): string[] {
    return [...this.#routes.keys()];
  }

  get size(): number {
    return this.#routes.size;
  }

  /** Adopts the store's state of a sandbox. Hidden states close it. */
  apply(sandbox: SandboxRecord): void {
    if (sandbox.state === 'starting' || this.#ended.has(sandbox.executionId)) return;
    if (sandbox.state === 'killing') return this.close(sandbox);
    const before = this.#routes.get(sandbox.sandboxId);
    const route = this.#routeOf(sandbox);
    this.#routes.set(sandbox.sandboxId, route);
    const goesOn = route.state === 'running' && before?.executionId === route.executionId;
    if (before?.state === 'running' && !goesOn) this.#edges.append(closedChange(before));
    if (route.state === 'running') this.#edges.append({ kind: 'running', route });
  }

  /** Whether it knows a sandbox as this execution. */
  knows({ sandboxId, executionId }: SandboxExecution): boolean {
    return this.#routes.get(sandboxId)?.executionId === executionId;
  }

  /** Adds a sandbox that was running before this process; if it is known already, what is known is better. */
  adopt(sandbox: SandboxRecord): void {
    if (!this.knows(sandbox)) this.apply(sandbox);
  }

  /** Forgets an execution for good; a successor with the same ID stays. */
  close(target: ClosedExecution): void {
    this.#ended.set(target.executionId, true);
    if (this.#routes.get(target.sandboxId)?.executionId !== target.executionId) return;
    this.#routes.delete(target.sandboxId);
    this.#edges.append(closedChange(target));
  }

  #routeOf(sandbox: SandboxRecord): SandboxRoute {
    const { accessToken, trafficToken } = this.#tokensOf(sandbox);
    return {
      sandboxId: sandbox.sandboxId,
      executionId: sandbox.executionId,
      nodeId: sandbox.nodeId,
      teamId: sandbox.teamId,
      state: routeState[sandbox.state],
      ingress: {
        trafficAccessToken: trafficToken,
        accessToken,
        maskRequestHost: sandbox.network?.maskRequestHost ?? null,
        httpsPorts: sandbox.network?.httpsPorts ?? [],
        autoResume: sandbox.autoResume && sandbox.kept !== 'filesystem',
      },
    };
  }
}

/** Connections into a sandbox stay open while this says `running`. Hidden states have no route. */
const routeState: Record<SandboxState, SandboxRoute['state']> = {
  starting: 'paused',
  running: 'running',
  pausing: 'pausing',
  paused: 'paused',
  resuming: 'paused',
  snapshotting: 'running',
  moving: 'moving',
  killing: 'paused',
};
