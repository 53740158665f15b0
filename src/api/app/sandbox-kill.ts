import { AtollError } from '../../base/error.ts';
import { sandboxStates, verdictOn } from '../../protocol/state.ts';
import { condemnSandbox } from '../store/sandbox-state.ts';
import { isOutcomeUnknown, outcomeUnknown } from '../store/postgres-driver.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import type { TeamRecord } from '../store/team.ts';
import { killSandboxWorkflow } from '../workflows/kill-sandbox.ts';
import type { App } from './context.ts';
import { sandboxFor, sandboxMoved } from './sandbox-find.ts';

const killableStates = sandboxStates.filter(state => verdictOn('kill', state) === 'allowed');

/** Ends a team's sandbox; answers when nothing of it is left. Throws `not_found`, also while another kill is under way. */
export async function killSandbox(app: App, team: TeamRecord, sandboxId: string): Promise<void> {
  const sandbox = await sandboxFor(app, team, sandboxId, 'kill');
  const marked = await markOrEnd(app, sandbox);
  if (!marked) {
    // It moved between the two reads: the second look decides, and a third state in a row is a conflict.
    const again = await sandboxFor(app, team, sandboxId, 'kill');
    const markedNow = await markOrEnd(app, again);
    if (!markedNow) throw sandboxMoved(again.sandboxId);
    return endSandbox(app, markedNow);
  }
  await endSandbox(app, marked);
}

/**
 * The same for a kill whose answer must be true when it is given: where the database does not say whether it took note of it,
 * the sandbox is ended all the same, so that nothing is left that could end it later. Throws `unavailable` then.
 */
async function markOrEnd(app: App, sandbox: SandboxRecord): Promise<SandboxRecord | null> {
  try {
    return await markKilling(app, sandbox);
  } catch (error) {
    if (!isOutcomeUnknown(error)) throw error;
    await endSandbox(app, sandbox);
    throw new AtollError('unavailable', `Sandbox "${sandbox.sandboxId}" was ended, but the database went away before that was written down`, {
      retryAfterSeconds: 2,
      detail: outcomeUnknown,
      cause: error,
    });
  }
}

/** The point of no return of a kill. Null when the sandbox is not (any more) in a state that can be killed. */
export async function markKilling(app: App, sandbox: SandboxRecord): Promise<SandboxRecord | null> {
  const marked = await condemnSandbox(app.store.db, sandbox, killableStates, app.clock());
  if (marked) app.directory.close(marked);
  return marked;
}

/** Finishes a kill. Throws `internal` when the sandbox could not be removed yet; the reconciler goes on trying. */
async function endSandbox(app: App, marked: SandboxRecord): Promise<void> {
  try {
    await killSandboxWorkflow(app, marked);
  } catch (error) {
    throw new AtollError('internal', `Sandbox "${marked.sandboxId}" is cut off, but not all of it could be removed yet; this is tried again until done`, {
      cause: error,
    });
  }
}
