import { AtollError } from '../../base/error.ts';
import type { Kept } from '../../protocol/node.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import type { TeamRecord } from '../store/team.ts';
import type { App } from './context.ts';
import { sandboxFor, sandboxMoved } from './sandbox-find.ts';
import { resumePaused } from './sandbox-resume.ts';
import { checkTimeout, setEnd } from './sandbox-timeout.ts';
import { awaitTransition } from './transition.ts';

/** How often a sandbox may be found changing before the caller is told to ask again. */
const attemptsMax = 5;

export type ConnectOptions = { seconds: number; memory: boolean };

export type Connected = {
  /** As it was found. */
  before: SandboxRecord;
  sandbox: SandboxRecord;
  /** What it was resumed from; null where it ran. */
  resumedFrom: Kept | null;
};

/**
 * Makes sure that a sandbox runs for at least `seconds` from now, resuming it where it is paused; callers at the same time
 * share one resume. With `memory` false a paused one boots from its files.
 * Errors: `invalid`, `not_found`, `conflict`, and those of a resume.
 */
export async function connectSandbox(app: App, team: TeamRecord, sandboxId: string, options: ConnectOptions): Promise<Connected> {
  const { seconds } = options;
  checkTimeout(app, team, seconds, 0);
  for (let attempt = 1; ; attempt++) {
    const before = await sandboxFor(app, team, sandboxId, 'connect');
    const shared = app.resuming.get(before.sandboxId);
    if (shared) {
      await shared;
      continue;
    }
    try {
      if (before.state === 'running') return { before, sandbox: await setEnd(app, team, before, seconds, true), resumedFrom: null };
      if (before.state === 'paused') {
        const { sandbox, from } = await resumePaused(app, team, before, options);
        return { before, sandbox, resumedFrom: from };
      }
    } catch (error) {
      // It began to change after it was looked at: somebody else's resume, pause or kill decides what is to be done.
      if (!(error instanceof AtollError) || error.code !== 'conflict' || attempt === attemptsMax) throw error;
    }
    if (attempt === attemptsMax) throw sandboxMoved(before.sandboxId);
    await awaitTransition(app, before);
  }
}
