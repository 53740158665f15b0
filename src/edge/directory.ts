import type { Route } from '../protocol/directory.ts';

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
