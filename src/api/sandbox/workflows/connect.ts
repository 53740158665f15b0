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

/** How often a sandbox may be found changing before the caller is told to ask again. */
const attemptsMax = 5;

/** How long a sandbox is to run at least, seconds, and whether with its memory. */
export type ConnectOptions = { seconds: number; memory: boolean };

/** A sandbox that runs. */
type Connected = {
  /** As it was found. */
  before: SandboxRecord;
  sandbox: SandboxRecord;
  /** What it was resumed from; null where it ran. */
  resumedFrom: Kept | null;
};

/**
 * Makes sure that a sandbox runs for at least `seconds` from now, resuming it where it is paused; callers at the same
 * time share one resume. With `memory` false a paused one boots from its files. Errors: `invalid`, `not_found`,
 * `conflict`, and those of a resume.
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
      // It began to change after it was looked at, by the one whose resume this shares too: somebody else's resume,
      // pause or kill decides what is to be done.
      if (!(error instanceof AtollError) || error.code !== 'conflict' || attempt >= attemptsMax) throw error;
      // That does not change by itself.
      if (error.detail === agentUnresponsive || error.detail === volumeChanged) throw error;
    }
    if (attempt >= attemptsMax) throw sandboxMoved(before.sandboxId);
    await awaitTransition(deps, before);
  }
}
