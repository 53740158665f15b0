/** What the edge has to know of a sandbox to send requests to it. */
export type Route = {
  readonly sandboxId: string;
  /** Whose it is: its connections count for this team. */
  readonly teamId: string;
  /** The incarnation that runs; another one shares no connection with it. */
  readonly executionId: string;
  /** A sandbox in any other state is one that can't be found. */
  readonly state: 'running' | 'pausing' | 'paused';
  readonly ingress: Ingress;
};

export type Ingress = {
  /** What requests to every port but the agent's must carry; null: traffic is public. */
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

/** An execution whose connections must be cut: it is to be paused or ended. */
export type ClosedExecution = { sandboxId: string; executionId: string };

/** What changes for the edge: a sandbox runs, or an execution is to be cut. */
export type RouteChange = { kind: 'running'; route: Route } | { kind: 'closed'; closed: ClosedExecution };

/** How far an edge has read the changes: numbers are counted anew by each process of the api. */
export type RoutesPlace = { epoch: string; number: number };

export type RoutesPage = {
  /** Every sandbox that runs, where the changes do not go on from the place asked with: what is not in it is to be cut. */
  all: Route[] | null;
  changes: RouteChange[];
  /** To ask with for what follows. */
  next: RoutesPlace;
};

/** What is open at the edge at a moment. */
export type EdgeStats = {
  /** Clients' connections. */
  readonly clientConnections: number;
  /** So far: connections that gave their place to a newcomer while they were idle, and newcomers for whom there was none. */
  readonly evictedClients: number;
  readonly refusedClients: number;
  /** Requests and upgraded connections that are in sandboxes or on their way there. */
  readonly inSandboxes: number;
  /** Connections to the API and into sandboxes, idle ones included. */
  readonly upstreamConnections: number;
};

/** What the api tells the edge about sandboxes. */
export type DirectoryProtocol = {
  /**
   * What has changed from `after` on; null: everything that runs. Answers when there is something, at the latest after `waitMs`.
   * To ask with a place says that everything before it holds: connections of what was closed are cut. No kill and no pause goes on
   * before that was said.
   */
  changes(after: RoutesPlace | null, waitMs: number, signal?: AbortSignal): Promise<RoutesPage>;

  /** A sandbox as it is now; null for one that is unknown, killed or being killed. */
  find(sandboxId: string): Promise<Route | null>;

  /**
   * Resumes a paused sandbox (waiting for a pause under way) and answers its running route. Concurrent calls for one
   * sandbox are one resume. Errors: `not_found`, `conflict` (in transition for too long), `rate_limited` (the team's
   * limit), `forbidden`; others count as the platform's trouble. Aborting `signal` only ends the wait.
   */
  wake(sandboxId: string, signal?: AbortSignal): Promise<Route>;

  /** Says what is open at the edge, for the operator's metrics. */
  report(stats: EdgeStats): Promise<void>;
};
