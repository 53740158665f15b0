import { AtollError } from '../../../../base/error.ts';
import { newUuid } from '../../../../base/id.ts';
import type { Resuming } from '../../rules/resuming.ts';
import type { Kept } from '../../../../protocol/node.ts';
import { isPartLost } from '../../../../protocol/part-lost.ts';
import { volumeChanged } from '../../../../protocol/volume.ts';
import { resumeSandboxWorkflow } from './steps.ts';
import { sandboxFor, sandboxMoved } from '../../rules/find.ts';
import { checkTimeout } from '../../rules/timeout.ts';
import { awaitTransition } from '../transition.ts';
import { nodeFull, saysFull } from '../../../../protocol/no-room.ts';
import { requireResponsiveAgent } from '../../rules/agent.ts';
import { placeOfResume } from '../../rules/place/resume.ts';
import type { SandboxRecord } from '../../record.ts';
import type { TeamRecord } from '../../../team/record.ts';
import type { ResumeWork } from './steps.ts';

/** What resuming a sandbox needs, with the resumes under way. */
export type ResumeDeps = ResumeWork & { resuming: Resuming };

const attemptsMax = 3;
/** A node's error for a sandbox whose memory it could not restore. */
export const restoreFailed = 'checkpoint_failed';

/** How a sandbox should run again. `seconds`: its time to live. */
type ResumeOptions = {
  seconds: number;
  /** False: it boots from its files, even where its memory was kept. */
  memory: boolean;
  /** Replaces what the sandbox does when its time is over. */
  autoPause?: boolean;
};

/** A sandbox before and after a resume, and what it was resumed from. */
type Resumed = { before: SandboxRecord; sandbox: SandboxRecord; from: Kept };

/**
 * The deprecated route: resumes a team's paused sandbox. Errors: those of a create, `conflict` when it is not paused.
 */
export async function resumeTeamsSandbox(
  deps: ResumeDeps,
  team: TeamRecord,
  sandboxId: string,
  options: ResumeOptions,
): Promise<Resumed> {
  checkTimeout(deps.limitsOf, team, options.seconds);
  for (let attempt = 1; ; attempt++) {
    const before = await sandboxFor(deps.db, team, sandboxId, 'resume');
    if (before.state === 'paused') return { before, ...(await resumePaused(deps, team, before, options)) };
    if (attempt === attemptsMax) throw sandboxMoved(before.sandboxId);
    await awaitTransition(deps, before);
  }
}

/**
 * Resumes a paused sandbox. This process has one resume per sandbox at a time: a second caller gets `conflict`, and can
 * wait for the first, which is in `deps.resuming`. It goes on when the client goes away. Errors also: `unavailable`
 * while its machine is out of reach, or is pausing its sandboxes, unless its pause is in the store: then it goes on
 * elsewhere.
 */
export async function resumePaused(
  deps: ResumeDeps,
  team: TeamRecord,
  paused: SandboxRecord,
  options: ResumeOptions,
): Promise<Omit<Resumed, 'before'>> {
  requireResponsiveAgent(paused, options.memory);
  if (deps.resuming.underWay(paused.sandboxId)) throw sandboxMoved(paused.sandboxId);
  return deps.resuming.run(paused.sandboxId, () => resumeWhereRoomIs(deps, team, paused, options));
}

/** Tries the next machine where one says that it has no room, as long as there are others. */
async function resumeWhereRoomIs(
  deps: ResumeDeps,
  team: TeamRecord,
  paused: SandboxRecord,
  options: ResumeOptions,
): Promise<Omit<Resumed, 'before'>> {
  const full = new Map<string, AtollError>();
  for (;;) {
    const nodeId = await placeOfResume(deps, paused, options.memory, full);
    try {
      return await resumeSandboxWorkflow({
        deps,
        team,
        sandbox: paused,
        nodeId,
        nextExecutionId: newUuid(),
        ...options,
      });
    } catch (error) {
      if (!saysFull(error) || full.has(nodeId)) throw explain(error, paused.sandboxId);
      full.set(nodeId, error);
    }
  }
}

/** The meaning of an undone resume for the caller. */
function explain(error: unknown, sandboxId: string): unknown {
  if (!(error instanceof AtollError)) return failed(error, sandboxId);
  // The error itself says that the node or the database went away: it is not about room.
  if (isPartLost(error) || error.mayHaveChanged) return error;
  // Not about room: something is not as it was, whether or not others can have changed it.
  if (error.detail === volumeChanged || error.detail === restoreFailed) {
    const isChanged = error.detail === volumeChanged;
    return new AtollError(
      isChanged ? 'conflict' : 'internal',
      `Sandbox "${sandboxId}" stays paused: ${error.message}. With memory: false it starts from its files`,
      { detail: isChanged ? volumeChanged : 'sandbox_resume_failed', fields: error.fields, cause: error },
    );
  }
  if (error.code === 'unavailable' || error.code === 'no_space') {
    return new AtollError('unavailable', `There is no room to resume sandbox "${sandboxId}" now; it stays paused`, {
      detail: error.detail ?? nodeFull,
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
  return new AtollError('internal', `Sandbox "${sandboxId}" stays paused. ${what}`, {
    detail: detail ?? 'sandbox_resume_failed',
    cause,
  });
}
