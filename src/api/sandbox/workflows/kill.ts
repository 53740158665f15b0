import { AtollError } from '../../../base/error.ts';
import { sandboxStates, verdictOn } from '../../../protocol/state.ts';
import { markSandboxForKill } from '../store/state.ts';
import { isOutcomeUnknown, outcomeUnknown } from '../../database/postgres/driver.ts';
import { killSandboxWorkflow } from './kill-steps.ts';
import { sandboxFor, sandboxMoved } from '../rules/find.ts';
import type { SandboxExecution, SandboxRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { BusyExecutions } from '../rules/busy.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import type { SandboxWork } from './run.ts';
import type { SandboxDirectory } from '../directory/directory.ts';

const killableStates = sandboxStates.filter(state => verdictOn('kill', state) === 'allowed');

/**
 * Ends a team's sandbox; answers when nothing of it is left. Throws `not_found`, also while another kill is under way.
 */
export async function killSandbox(deps: SandboxWork, team: TeamRecord, sandboxId: string): Promise<void> {
  const sandbox = await sandboxFor(deps.db, team, sandboxId, 'kill');
  const marked = await markOrEnd(deps, sandbox);
  if (!marked) {
    // Its state changed between the two reads: the second read decides, and a third state in a row is a conflict.
    const again = await sandboxFor(deps.db, team, sandboxId, 'kill');
    const markedNow = await markOrEnd(deps, again);
    if (!markedNow) throw sandboxMoved(again.sandboxId);
    return endSandbox(deps, markedNow);
  }
  await endSandbox(deps, marked);
}

/**
 * The same for a kill whose answer must be final: if the database does not say whether it has recorded the kill, the
 * sandbox is ended all the same, so that nothing is left that could end it later. Throws `unavailable` then.
 */
async function markOrEnd(deps: SandboxWork, sandbox: SandboxRecord): Promise<SandboxRecord | null> {
  try {
    return await markKilling(deps, sandbox);
  } catch (error) {
    if (!isOutcomeUnknown(error)) throw error;
    await endSandbox(deps, sandbox);
    throw new AtollError(
      'unavailable',
      `Sandbox "${sandbox.sandboxId}" was ended, but the database went away before that was written down`,
      { mayHaveChanged: true, detail: outcomeUnknown, cause: error },
    );
  }
}

/** The point of no return of a kill. Null when the sandbox is not (any more) in a state in which it can be killed. */
export async function markKilling(
  {
    busy,
    clock,
    db,
    directory,
  }: { busy: Pick<BusyExecutions, 'replicaId'>; clock: Clock; db: Db; directory: SandboxDirectory },
  sandbox: SandboxExecution,
): Promise<SandboxRecord | null> {
  const marked = await markSandboxForKill(db, sandbox, killableStates, clock(), busy.replicaId);
  if (marked) directory.close(marked);
  return marked;
}

/** Finishes a kill. Throws `internal` when the sandbox could not be removed yet; the reconciler goes on trying. */
async function endSandbox(deps: SandboxWork, marked: SandboxRecord): Promise<void> {
  try {
    await killSandboxWorkflow(deps, marked);
  } catch (error) {
    throw new AtollError(
      'internal',
      `Sandbox "${marked.sandboxId}" is cut off, but not all of it could be removed yet; this is tried again ` +
        'until done',
      { cause: error },
    );
  }
}
