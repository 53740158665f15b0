import { AtollError } from '../../../base/error.ts';
import type { Kept } from '../../../protocol/node.ts';
import { volumeChanged } from '../../../protocol/volume.ts';
import { sandboxFor, sandboxMoved } from '../rules/find.ts';
import { agentUnresponsive } from '../rules/agent.ts';
import { resumePaused } from './resume/resume.ts';
import { checkTimeout, setEnd } from '../rules/timeout.ts';
import { awaitTransition } from './transition.ts';
import type { SandboxRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { ResumeDeps } from './resume/resume.ts';

/** How often a sandbox may be found in transition before the caller is told to ask again. */
const attemptsMax = 5;

/** The least time that a sandbox should run, seconds, and whether with its memory. */
export type ConnectOptions = { seconds: number; memory: boolean };

/** A running sandbox. */
type Connected = {
  /** Its state before. */
  before: SandboxRecord;
  sandbox: SandboxRecord;
  /** What it was resumed from; null where it was running. */
  resumedFrom: Kept | null;
};

/**
 * Makes sure that a sandbox runs for at least `seconds` from now, and resumes it if it is paused; concurrent callers
 * share one resume. With `memory` false a paused one boots from its files. Errors: `invalid`, `not_found`, `conflict`,
 * and those of a resume.
 */
export async function connectSandbox(
  deps: ResumeDeps,
  team: TeamRecord,
  sandboxId: string,
  options: ConnectOptions,
): Promise<Connected> {
  const { seconds } = options;
  checkTimeout(deps.limitsOf, team, seconds, 0);
  for (let attempt = 1; ; attempt++) {
    const before = await sandboxFor(deps.db, team, sandboxId, 'connect');
    try {
      const shared = deps.resuming.underWay(before.sandboxId);
      if (shared) {
        await shared;
        continue;
      }
      if (before.state === 'running')
        return { before, sandbox: await setEnd(deps, team, before, seconds, true), resumedFrom: null };
      if (before.state === 'paused') {
        const { sandbox, from } = await resumePaused(deps, team, before, options);
        return { before, sandbox, resumedFrom: from };
      }
    } catch (error) {
      // It began to change after it was read, perhaps by the caller whose resume this one shares: somebody else's
      // resume, pause or kill decides what to do.
      if (!(error instanceof AtollError) || error.code !== 'conflict' || attempt >= attemptsMax) throw error;
      // That does not change by itself.
      if (error.detail === agentUnresponsive || error.detail === volumeChanged) throw error;
    }
    if (attempt >= attemptsMax) throw sandboxMoved(before.sandboxId);
    await awaitTransition(deps, before);
  }
}
