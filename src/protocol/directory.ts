import type { NodeWay } from './cluster.ts';

/** What the edge needs to know to send requests to a sandbox. */
export type Route = {
  readonly sandboxId: string;
  /** The sandbox's team; its connections count towards the team's limit. */
  readonly teamId: string;
  /** The running incarnation; it shares no connection with another one. */
  readonly executionId: string;
  /** The machine that it is on. */
  readonly nodeId: string;
  /** `moving`: it runs again in a moment. A sandbox in any other state can't be found. */
  readonly state: 'running' | 'moving' | 'pausing' | 'paused';
  readonly ingress: Ingress;
};

/** How requests reach one sandbox. */
export type Ingress = {
  /** Token that requests to every port but the agent's must carry; null: traffic is public. */
  readonly trafficAccessToken: string | null;
  /** The agent's token; null: the sandbox is not secured. The edge asks for it only before it wakes a sandbox. */
  readonly accessToken: string | null;
  /** The Host that the sandbox sees, `${PORT}` replaced by the port; null: the client's. Never for the agent. */
  readonly maskRequestHost: string | null;
  /** Ports whose service speaks TLS. */
  readonly httpsPorts: readonly number[];
  /** Traffic wakes the sandbox. Must be false where the snapshot has no memory: traffic never cold-boots. */
  readonly autoResume: boolean;
};

/** An execution whose connections must be cut, because it is about to be paused or ended. */
export type ClosedExecution = { sandboxId: string; executionId: string };

/** A change for the edge: a sandbox runs, or connections to an execution must be cut. */
export type RouteChange = { kind: 'running'; route: Route } | { kind: 'closed'; closed: ClosedExecution };

/** How far an edge has read the changes. Each process of the api counts from 0. */
export type RoutesCursor = { epoch: string; number: number };

/** An answer of the directory: everything, or changes from a cursor on. */
export type RoutesPage = {
  /** Every running sandbox, where the changes do not continue from the given cursor: the edge then cuts all others. */
  all: Route[] | null;
  changes: RouteChange[];
  /** The cursor for what follows. */
  next: RoutesCursor;
};

/** Connections and requests at the edge at one moment. */
export type EdgeStats = {
  /** Clients' connections. */
  readonly clientConnections: number;
  /** How many of these there can be. */
  readonly clientConnectionsMax: number;
  /** Counts since the start: idle connections that gave way to a newcomer, and newcomers that found no place. */
  readonly evictedClients: number;
  readonly refusedClients: number;
  /** Requests and upgraded connections that are in sandboxes or on their way there. */
  readonly inSandboxes: number;
  /** Connections to the API and into sandboxes, idle ones included. */
  readonly upstreamConnections: number;
};

/** The api's news about sandboxes, for the edge. */
export type DirectoryProtocol = {
  /**
   * Changes after `after`; null: everything that runs. Answers when there are some, at the latest after `waitMs`. By
   * passing a cursor the edge says that it has cut the connections to everything that was closed before it. A kill or
   * pause waits for that.
   */
  changes(after: RoutesCursor | null, waitMs: number, signal?: AbortSignal): Promise<RoutesPage>;

  /** A sandbox as it is now; null for one that is unknown, killed or being killed. */
  find(sandboxId: string): Promise<Route | null>;

  /**
   * Resumes a paused sandbox and answers its running route; waits for a pause or move under way first. Concurrent calls
   * for one sandbox share one resume. Errors: `not_found`, `conflict` (in transition for too long), `rate_limited` (the
   * team's limit), `forbidden`; any other error counts as the platform's fault. Aborting `signal` only ends the wait.
   */
  wake(sandboxId: string, signal?: AbortSignal): Promise<Route>;

  /**
   * The way to a machine of the cluster, and what the edge shows there. Errors: `unavailable` for a machine that
   * control does not reach.
   */
  way(nodeId: string): Promise<NodeWay>;

  /** Reports what is open at the edge, for the operator's metrics. */
  report(stats: EdgeStats): Promise<void>;
};
