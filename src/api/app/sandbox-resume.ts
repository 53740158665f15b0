import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import type { Kept } from '../../protocol/node.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import type { TeamRecord } from '../store/team.ts';
import { resumeSandboxWorkflow } from '../workflows/resume-sandbox.ts';
import type { App } from './context.ts';
import { sandboxFor, sandboxMoved } from './sandbox-find.ts';
import { checkTimeout } from './sandbox-timeout.ts';
import { awaitTransition } from './transition.ts';

const attemptsMax = 3;
/** What a node says of a sandbox whose memory it could not put back. */
export const restoreFailed = 'checkpoint_failed';

export type ResumeOptions = {
  seconds: number;
  /** False: it boots from its files, even where its memory was kept. */
  memory: boolean;
  /** Replaces what the sandbox does when its time is over. */
  autoPause?: boolean;
};

export type Resumed = { before: SandboxRecord; sandbox: SandboxRecord; from: Kept };

/** The deprecated route: resumes a team's paused sandbox. Errors: those of a create, `conflict` when it is not paused. */
export async function resumeTeamsSandbox(app: App, team: TeamRecord, sandboxId: string, options: ResumeOptions): Promise<Resumed> {
  checkTimeout(app, team, options.seconds);
  for (let attempt = 1; ; attempt++) {
    const before = await sandboxFor(app, team, sandboxId, 'resume');
    if (before.state === 'paused') return { before, ...(await resumePaused(app, team, before, options)) };
    if (attempt === attemptsMax) throw sandboxMoved(before.sandboxId);
    await awaitTransition(app, before);
  }
}

/**
 * Lets a paused sandbox run. In this process there is one resume of a sandbox at a time: who comes second is told
 * `conflict`, and can wait for the first, which is in `app.resuming`. It goes on when the client goes away.
 */
export async function resumePaused(app: App, team: TeamRecord, paused: SandboxRecord, options: ResumeOptions): Promise<Omit<Resumed, 'before'>> {
  if (app.resuming.has(paused.sandboxId)) throw sandboxMoved(paused.sandboxId);
  const resuming = resumeSandboxWorkflow({ app, team, sandbox: paused, nextExecutionId: newUuid(), ...options })
    .catch(error => {
      throw explain(error, paused.sandboxId);
    })
    .finally(() => app.resuming.delete(paused.sandboxId));
  app.resuming.set(paused.sandboxId, resuming);
  return resuming;
}

/** Says what a resume that was undone means to the caller. */
function explain(error: unknown, sandboxId: string): unknown {
  if (!(error instanceof AtollError)) return failed(error, sandboxId);
  // No matter of room: it has something that is not as it was, e.g. a file of a volume that others have deleted.
  if (error.detail === restoreFailed) {
    return new AtollError('internal', `Sandbox "${sandboxId}" stays paused: ${error.message}. With memory: false it starts from its files`, {
      detail: 'sandbox_resume_failed',
      fields: error.fields,
      cause: error,
    });
  }
  if (error.code === 'unavailable' || error.code === 'no_space') {
    return new AtollError('unavailable', `There is no room to resume sandbox "${sandboxId}" now; it stays paused`, {
      detail: error.detail ?? 'sandbox_capacity_unavailable',
      fields: error.fields,
      cause: error,
    });
  }
  if (error.code === 'internal' || error.code === 'not_found') return failed(error, sandboxId);
  return error;
}

function failed(cause: unknown, sandboxId: string): AtollError {
  const detail = cause instanceof AtollError ? cause.detail : undefined;
  const damaged = detail === 'sandbox_state_damaged';
  const what = damaged ? 'What was kept of it is damaged' : 'It could not be started again';
  return new AtollError('internal', `Sandbox "${sandboxId}" stays paused. ${what}`, { detail: detail ?? 'sandbox_resume_failed', cause });
}
