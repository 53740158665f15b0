import type { Route } from '../../protocol/directory.ts';

/** Where the edge looks sandboxes up. */
export type SandboxDirectory = {
  /**
   * The sandbox's route, undefined for one that is unknown, killed or being killed. Answer without a promise where
   * possible: this is on the path of every request.
   */
  find(sandboxId: string): Route | undefined | Promise<Route | undefined>;
  /** The sandboxes that run, as far as the edge knows. */
  running(): Iterable<Route>;
  /**
   * Resumes a paused sandbox (waiting for a pause under way) and answers its running route. Concurrent calls for one
   * sandbox are one resume. Errors: `not_found`, `conflict` (in transition for too long), `rate_limited` (the team's
   * limit), `forbidden`; others count as the platform's trouble. Aborting `signal` only ends the wait.
   */
  wake(sandboxId: string, signal: AbortSignal): Promise<Route>;
};

/** A connection into a sandbox: the `dial` of the node protocol, on whichever node the sandbox runs. */
export type Dial = (sandboxId: string, port: number, signal: AbortSignal) => Promise<number>;

/** The far end of a connection that another machine carries: the socket that stands for it knows no reset. */
export type FarEnd = { wasReset(): boolean; reset(): void };

/** The far ends of dialled connections, each asked for once; undefined for one that is connected directly. */
export type FarEnds = { take(descriptor: number): FarEnd | undefined };
