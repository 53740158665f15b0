import { AtollError } from '../../../base/error.ts';
import { beginPause } from '../store/pause.ts';
import { pauseSandboxWorkflow } from './pause-steps.ts';
import { memoryUnavailable, requireMemory } from '../rules/memory.ts';
import { sandboxFor, sandboxMoved } from '../rules/find.ts';
import { awaitTransition } from './transition.ts';
import type { SandboxRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { SandboxWork } from './run.ts';
import type { Resuming } from '../rules/resuming.ts';

/** What pausing a sandbox takes. */
export type PauseDeps = SandboxWork & { resuming: Resuming };

/** How often a sandbox may be found in a transition before the caller is told to ask again. */
const attemptsMax = 3;

/**
 * Pauses a team's sandbox, with its memory or with its files alone. Answers when its state survives a crash. Errors:
 * `not_found`; `conflict`, also for one that is paused; `precondition` where memory can't be kept, with the reason, and
 * `no_space`: then it runs on.
 */
export async function pauseSandbox(
  deps: PauseDeps,
  team: TeamRecord,
  sandboxId: string,
  memory: boolean,
): Promise<SandboxRecord> {
  for (let attempt = 1; ; attempt++) {
    const sandbox = await sandboxFor(deps.db, team, sandboxId, 'pause');
    if (sandbox.state === 'running') {
      if (memory)
        await requireMemory(deps.nodes.get(sandbox.nodeId), sandbox, 'pause', 'memory: false keeps the files');
      const paused = await pauseRunning(deps, sandbox, memory);
      if (paused) return paused;
    }
    if (attempt === attemptsMax) throw sandboxMoved(sandbox.sandboxId);
    if (sandbox.state !== 'running') await awaitTransition(deps, sandbox);
  }
}

/** Null when the sandbox left the state `running` by itself. With `dueByUs`, also when its time is not over by then. */
export async function pauseRunning(
  deps: SandboxWork,
  sandbox: SandboxRecord,
  memory: boolean,
  dueByUs?: number,
): Promise<SandboxRecord | null> {
  return deps.busy.while(sandbox.executionId, async () => {
    const pausing = await beginPause(deps.db, sandbox, memory ? 'memory' : 'filesystem', deps.busy.replicaId, dueByUs);
    if (!pausing) return null;
    try {
      return await pauseSandboxWorkflow(deps, pausing);
    } catch (error) {
      throw explain(error);
    }
  });
}

/** Says what a pause that was undone means to the caller. */
function explain(error: unknown): unknown {
  if (!(error instanceof AtollError)) return error;
  if (error.code === 'precondition')
    return new AtollError('precondition', error.message, {
      detail: memoryUnavailable,
      fields: error.fields,
      cause: error,
    });
  if (error.code === 'no_space')
    return new AtollError(
      'no_space',
      `The sandbox runs on: there is no room on the machine to keep it (${error.message})`,
      { cause: error },
    );
  if (error.code === 'not_found')
    return new AtollError('conflict', 'The sandbox ended while it was paused', { cause: error });
  return error;
}
