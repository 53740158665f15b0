import { AtollError } from '../../base/error.ts';
import { beginPause } from '../store/sandbox-pause.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import type { TeamRecord } from '../store/team.ts';
import { pauseSandboxWorkflow } from '../workflows/pause-sandbox.ts';
import type { App } from './context.ts';
import { memoryUnavailable, requireMemory } from './memory-ability.ts';
import { sandboxFor, sandboxMoved } from './sandbox-find.ts';
import { awaitTransition } from './transition.ts';

/** How often a sandbox may be found in a transition before the caller is told to ask again. */
const attemptsMax = 3;

/**
 * Pauses a team's sandbox, with its memory or with its files alone. Answers when its state survives a crash.
 * Errors: `not_found`; `conflict`, also for one that is paused; `precondition` where memory can't be kept, with the reason,
 * and `no_space`: then it runs on.
 */
export async function pauseSandbox(app: App, team: TeamRecord, sandboxId: string, memory: boolean): Promise<SandboxRecord> {
  for (let attempt = 1; ; attempt++) {
    const sandbox = await sandboxFor(app, team, sandboxId, 'pause');
    if (sandbox.state === 'running') {
      if (memory) await requireMemory(app.nodes.get(sandbox.nodeId), sandbox, 'pause', 'memory: false keeps the files');
      const paused = await pauseRunning(app, sandbox, memory);
      if (paused) return paused;
    }
    if (attempt === attemptsMax) throw sandboxMoved(sandbox.sandboxId);
    if (sandbox.state !== 'running') await awaitTransition(app, sandbox);
  }
}

/** Null when the sandbox left the state `running` by itself. With `dueByUs`, also when its time is not over by then. */
export async function pauseRunning(app: App, sandbox: SandboxRecord, memory: boolean, dueByUs?: number): Promise<SandboxRecord | null> {
  return app.busy.while(sandbox.executionId, async () => {
    const pausing = await beginPause(app.store.db, sandbox, memory ? 'memory' : 'filesystem', dueByUs);
    if (!pausing) return null;
    try {
      return await pauseSandboxWorkflow(app, pausing);
    } catch (error) {
      throw explain(error);
    }
  });
}

/** Says what a pause that was undone means to the caller. */
function explain(error: unknown): unknown {
  if (!(error instanceof AtollError)) return error;
  if (error.code === 'precondition') return new AtollError('precondition', error.message, { detail: memoryUnavailable, fields: error.fields, cause: error });
  if (error.code === 'no_space') return new AtollError('no_space', `The sandbox runs on: there is no room on the machine to keep it (${error.message})`, { cause: error });
  if (error.code === 'not_found') return new AtollError('conflict', 'The sandbox ended while it was paused', { cause: error });
  return error;
}
