import type { Route } from '../../protocol/directory.ts';

/** Where the edge looks sandboxes up. */
export type SandboxDirectory = {
  /**
   * The sandbox's route; undefined if it is unknown, killed or being killed. Answers without a promise where possible,
   * because every request needs it.
   */
  find(sandboxId: string): Route | undefined | Promise<Route | undefined>;
  /** The sandboxes that run, as far as the edge knows. */
  running(): Iterable<Route>;
  /**
   * Resumes a paused sandbox (waiting for a pause in progress) and answers its running route. Concurrent calls for one
   * sandbox share one resume. Errors: `not_found`, `conflict` (in transition for too long), `rate_limited` (the team's
   * limit), `forbidden`; any other error counts as a failure of the platform. Aborting `signal` only ends the wait.
   */
  wake(sandboxId: string, signal: AbortSignal): Promise<Route>;
};

/** A connection into a sandbox: the `dial` of the node protocol, on whichever node runs the sandbox. */
export type Dial = (sandboxId: string, port: number, signal: AbortSignal) => Promise<number>;

/** The far end of a connection that another machine carries: the local socket that stands for it can't show a reset. */
export type FarEnd = { wasReset(): boolean; reset(): void };

/** The far ends of dialled connections. Each can be asked for once; undefined for a direct connection. */
export type FarEnds = { take(descriptor: number): FarEnd | undefined };
