import type { SandboxState } from '../../protocol/state.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';

/** What the edge must know to bring a request into a sandbox; its own `Route` is a part of this. */
export type SandboxRoute = {
  readonly sandboxId: string;
  readonly executionId: string;
  readonly nodeId: string;
  readonly teamId: string;
  /** `running` also while a snapshot is taken; `paused` also while it is being resumed: waking it waits for that. */
  readonly state: 'running' | 'pausing' | 'paused';
  readonly ingress: {
    /** Required on every port but the agent's, or null where traffic is public. */
    readonly trafficAccessToken: string | null;
    /** Required on the agent's port, or null for an unsecured sandbox. */
    readonly accessToken: string | null;
    readonly maskRequestHost: string | null;
    readonly httpsPorts: readonly number[];
    /** Traffic wakes the sandbox while it is paused; never one whose snapshot has no memory. */
    readonly autoResume: boolean;
  };
};

/** Executions whose end is remembered; far more than can end while a row that was read is on its way. */
const endedMax = 10_000;

/** A sandbox stopped being reachable: connections to this execution must be cut. */
export type SandboxClosed = { sandboxId: string; executionId: string };

/**
 * Where every sandbox is, in memory: read for each request at the edge, loaded at start,
 * and changed by the code that changes the rows. The database stays the truth.
 */
export class SandboxDirectory {
  readonly #routes = new Map<string, SandboxRoute>();
  /** Executions that were closed, the oldest first: what was read of one before it ended must not bring it back. */
  readonly #ended = new Set<string>();
  readonly #listeners = new Set<(closed: SandboxClosed) => void>();
  readonly #tokensOf: (sandbox: SandboxRecord) => { accessToken: string | null; trafficToken: string | null };

  constructor(tokensOf: (sandbox: SandboxRecord) => { accessToken: string | null; trafficToken: string | null }) {
    this.#tokensOf = tokensOf;
  }

  /** Any sandbox that clients can see. */
  find(sandboxId: string): SandboxRoute | undefined {
    return this.#routes.get(sandboxId);
  }

  /** Calls `listener` whenever connections of an execution must be cut. Returns the way to stop listening. */
  onClosed(listener: (closed: SandboxClosed) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get size(): number {
    return this.#routes.size;
  }

  /** Takes over what the store says of a sandbox. Hidden states close it. */
  apply(sandbox: SandboxRecord): void {
    if (sandbox.state === 'starting' || this.#ended.has(sandbox.executionId)) return;
    if (sandbox.state === 'killing') return this.close(sandbox);
    const before = this.#routes.get(sandbox.sandboxId);
    const route = this.#routeOf(sandbox);
    this.#routes.set(sandbox.sandboxId, route);
    const goesOn = route.state === 'running' && before?.executionId === route.executionId;
    if (before?.state === 'running' && !goesOn) this.#tell({ sandboxId: before.sandboxId, executionId: before.executionId });
  }

  /** Takes over a sandbox that was running before this process; one that is known already is known better. */
  adopt(sandbox: SandboxRecord): void {
    if (this.#routes.get(sandbox.sandboxId)?.executionId !== sandbox.executionId) this.apply(sandbox);
  }

  /** Forgets an execution for good; a successor with the same ID stays. */
  close(target: SandboxClosed): void {
    this.#ended.add(target.executionId);
    const [oldest] = this.#ended;
    if (oldest !== undefined && this.#ended.size > endedMax) this.#ended.delete(oldest);
    if (this.#routes.get(target.sandboxId)?.executionId !== target.executionId) return;
    this.#routes.delete(target.sandboxId);
    this.#tell({ sandboxId: target.sandboxId, executionId: target.executionId });
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

  #tell(closed: SandboxClosed): void {
    for (const listener of this.#listeners) listener(closed);
  }
}

/** Connections into a sandbox live on while this says `running`. Hidden states have no route. */
const routeState: Record<SandboxState, SandboxRoute['state']> = {
  starting: 'paused',
  running: 'running',
  pausing: 'pausing',
  paused: 'paused',
  resuming: 'paused',
  snapshotting: 'running',
  killing: 'paused',
};
