import { AtollError } from '../../../../base/error.ts';
import type { Durability } from '../../../../protocol/durability.ts';
import type { DurablePauses } from '../../../blob/rules/pauses.ts';
import { beginPause, recordPauseStored } from '../../store/pause.ts';
import { findExecution, findSandbox } from '../../store/read.ts';
import { pauseNotStored, requireDurability, usualDurability } from '../../rules/durability.ts';
import { pauseSandboxWorkflow, type PauseWork, storePause } from './steps.ts';
import { memoryUnavailable, requireMemory } from '../../rules/memory.ts';
import { parseSandboxId, sandboxFor, sandboxMoved } from '../../rules/find.ts';
import { awaitTransition } from '../transition.ts';
import type { SandboxExecution, SandboxRecord } from '../../record.ts';
import type { TeamRecord } from '../../../team/record.ts';
import type { Resuming } from '../../rules/resuming.ts';

/** Dependencies of pausing a sandbox. */
export type PauseDeps = PauseWork & {
  resuming: Resuming;
  /** Null: nothing is kept outside of its machine. */
  durablePauses: DurablePauses | null;
};

/** What a pause keeps, and what it survives. */
type PauseOptions = {
  memory: boolean;
  /** Null: the team's default, where possible. */
  durability: Durability | null;
  /** Only if the agent in the sandbox answers. */
  requireAgent?: boolean;
};

/** How often a sandbox may be found in a transition before the caller is told to ask again. */
const attemptsMax = 3;

/**
 * Pauses a team's sandbox, with its memory or with its files alone. Answers when its state survives a crash and, with
 * the durability `cluster`, the loss of its machine. Errors: `not_found`; `conflict`, also for one that is paused
 * already, unless it is still to be stored; `precondition` where memory can't be kept, with the reason, and `no_space`:
 * then it runs on; `unavailable` where it could not be stored: then it is paused on its machine; `unavailable` also
 * where its agent is required and does not answer: then it runs on.
 */
export async function pauseSandbox(
  deps: PauseDeps,
  team: TeamRecord,
  sandboxId: string,
  options: PauseOptions,
): Promise<SandboxRecord> {
  const { memory, durability } = options;
  if (durability === 'cluster') {
    const paused = await findSandbox(deps.db, team.teamId, parseSandboxId(sandboxId));
    if (paused?.state === 'paused') return storePaused(deps, paused);
  }
  for (let attempt = 1; ; attempt++) {
    const sandbox = await sandboxFor(deps.db, team, sandboxId, 'pause');
    if (sandbox.state === 'running') {
      if (memory)
        await requireMemory(deps.nodes.get(sandbox.nodeId), sandbox, 'pause', 'memory: false keeps the files');
      const paused = await pauseAs(deps, team, sandbox, options);
      if (paused) return paused;
    }
    if (attempt === attemptsMax) throw sandboxMoved(sandbox.sandboxId);
    if (sandbox.state !== 'running') await awaitTransition(deps, sandbox);
  }
}

/** If a pause should be stored only by the team's default, and can't be, it stays on its machine. */
async function pauseAs(
  deps: PauseDeps,
  team: TeamRecord,
  sandbox: SandboxRecord,
  { memory, durability, requireAgent = false }: PauseOptions,
): Promise<SandboxRecord | null> {
  const { db, durablePauses } = deps;
  if (durability !== null) {
    const durable = requireDurability(durablePauses, durability, { ...sandbox, member: 'durability' });
    return pauseRunning(deps, sandbox, { memory, durable, requireAgent });
  }
  const usual = usualDurability(durablePauses, team, sandbox.volumeMounts);
  const durable = usual === 'cluster' && durablePauses?.isUsable ? durablePauses : null;
  try {
    return await pauseRunning(deps, sandbox, { memory, durable, requireAgent });
  } catch (error) {
    if (!(error instanceof AtollError) || error.detail !== pauseNotStored) throw error;
    return findExecution(db, sandbox);
  }
}

/** Puts a sandbox that is paused on its machine into the store. */
async function storePaused(deps: PauseDeps, paused: SandboxRecord): Promise<SandboxRecord> {
  if (paused.durability === 'cluster') return paused;
  const durable = requireDurability(deps.durablePauses, 'cluster', { ...paused, member: 'durability' });
  if (durable) await storePause(deps, durable, paused);
  const stored = await recordPauseStored(deps.db, paused);
  if (!stored) throw sandboxMoved(paused.sandboxId);
  return stored;
}

/** Null when the sandbox left the state `running` by itself. With `dueByUs`, also when its time is not over by then. */
export async function pauseRunning(
  deps: PauseWork,
  sandbox: SandboxExecution,
  options: { memory: boolean; durable?: DurablePauses | null; requireAgent?: boolean },
  dueByUs?: number,
): Promise<SandboxRecord | null> {
  return deps.busy.while(sandbox.executionId, async () => {
    const { memory, durable = null, requireAgent = false } = options;
    const pausing = await beginPause(deps.db, sandbox, memory ? 'memory' : 'filesystem', deps.busy.replicaId, dueByUs);
    if (!pausing) return null;
    try {
      return await pauseSandboxWorkflow(deps, pausing, { durable, requireAgent });
    } catch (error) {
      throw explain(error);
    }
  });
}

/** The meaning of an undone pause for the caller. */
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
  if (error.forLog)
    return new AtollError('internal', 'The pause failed; the log of the platform has why', {
      ...(error.detail !== undefined && { detail: error.detail }),
      fields: error.fields,
      cause: error,
    });
  return error;
}
