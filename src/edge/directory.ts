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

/** Where the edge looks sandboxes up. */
export type SandboxDirectory = {
  /**
   * The sandbox's route, undefined for one that is unknown, killed or being killed. Answer without a promise where
   * possible: this is on the path of every request.
   */
  find(sandboxId: string): Route | undefined | Promise<Route | undefined>;
  /**
   * Resumes a paused sandbox (waiting for a pause under way) and answers its running route. Concurrent calls for one
   * sandbox are one resume. Errors: `not_found`, `conflict` (in transition for too long), `rate_limited` (the team's
   * limit), `forbidden`; others count as the platform's trouble. Aborting `signal` only ends the wait.
   */
  wake(sandboxId: string, signal: AbortSignal): Promise<Route>;
};

/** A connection into a sandbox: the `dial` of the node protocol, on whichever node the sandbox runs. */
export type Dial = (sandboxId: string, port: number, signal: AbortSignal) => Promise<number>;
