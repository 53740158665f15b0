import { AtollError, messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { ResumeSandbox } from '../../../protocol/node.ts';
import type { SandboxLogs } from '../../logs/sandbox-logs.ts';
import type { PausedRecord, RunningRecord } from '../records/record.ts';
import type { Withdrawn } from '../records/withdrawn.ts';
import type { StartedSandbox } from '../start/start-sandbox.ts';
import type { Frozen, Paused, Running } from '../state/sandbox-state.ts';
import { endWithProcesses, type EndParts } from './end.ts';
import { followLogs, type FollowParts } from './follow-logs.ts';
import { dropFrozen, freeProcesses, recordWithoutProcesses, type FrozenParts } from './frozen.ts';

/** What resuming sandboxes needs. */
export type ResumeParts = EndParts &
  FollowParts &
  FrozenParts & {
    /** Refuses sandboxes that the node has no room for; see start/admission.ts. */
    admitAgain(record: PausedRecord, request: ResumeSandbox): Promise<Disposable>;
    /** See start/start-again.ts. */
    startAgain(record: PausedRecord, request: ResumeSandbox): Promise<StartedSandbox | FailedStart>;
    /** See start/thaw.ts. */
    thaw(frozen: Frozen, request: ResumeSandbox): Promise<StartedSandbox>;
    /** Removes the kept memory, which is stale. */
    discardMemory(sandboxId: string): Promise<void>;
    withdrawn: Pick<Withdrawn, 'require'>;
    logs: Pick<SandboxLogs, 'write' | 'follow' | 'catchUp' | 'leave'>;
    log: Log;
  };

/** A failed start, and what is left to begin with. */
type FailedStart = { error: unknown; record: PausedRecord };

/**
 * Lets a paused sandbox run again; the same next execution begins once, however often this is called. Errors: those of
 * `NodeProtocol.resume`.
 */
export async function resumeSandbox(parts: ResumeParts, request: ResumeSandbox): Promise<RunningRecord> {
  const { sandboxes } = parts;
  const { sandboxId, nextExecutionId } = request;
  return sandboxes.inTurn(sandboxId, async () => {
    const state = sandboxes.get(sandboxId);
    if (state?.kind === 'running' && state.record.executionId === nextExecutionId) return state.record;
    parts.withdrawn.require(nextExecutionId);
    const paused = sandboxes.findPaused(request);
    if (!paused) throw new AtollError('not_found', `sandbox ${sandboxId} is not paused on this node`);
    const running = await resume(parts, paused, request);
    const from = running.record.resumedFrom ?? 'filesystem';
    const text = from === 'memory' ? 'resumed with its memory' : 'resumed: booted from its files';
    parts.logs.write(sandboxId, 'info', 'sandbox', text, { event: 'resumed', from });
    followLogs(parts, running);
    await parts.discardMemory(sandboxId).catch(error => {
      parts.log.warn('the memory of a resumed sandbox could not be put away', { sandboxId, error: messageOf(error) });
    });
    return running.record;
  });
}

async function resume(parts: ResumeParts, paused: Paused | Frozen, request: ResumeSandbox): Promise<Running> {
  if (paused.kind === 'paused') return resumeFromDisk(parts, paused, request);
  const { driver, slot } = paused.processes;
  // Somebody may have thawed them from outside: then they are not what was kept any more.
  if (request.memory && driver.isFrozen(slot)) return resumeFrozen(parts, paused, request);
  return resumeFromDisk(parts, await dropFrozen(parts, paused), request);
}

/** Processes that are still there are the sandbox. A failed resume ends them. */
async function resumeFrozen(parts: ResumeParts, frozen: Frozen, request: ResumeSandbox): Promise<Running> {
  const { sandboxes } = parts;
  const { sandboxId, record, processes } = frozen;
  const resuming = sandboxes.transition(frozen, {
    kind: 'resuming',
    sandboxId,
    record,
    nextExecutionId: request.nextExecutionId,
  });
  try {
    return sandboxes.transition(resuming, runningState(await parts.thaw(frozen, request)));
  } catch (error) {
    // What was kept is on the host's disk. Nobody can say which network policy these processes now have.
    const left = await recordWithoutProcesses(parts, record);
    sandboxes.transition(resuming, { kind: 'paused', sandboxId, record: left });
    processes.driver.killFrozen(processes.slot);
    await freeProcesses(parts, sandboxId, processes);
    throw error;
  }
}

/** Starts from what is on the host's disk. A failed start leaves that unchanged. */
async function resumeFromDisk(parts: ResumeParts, paused: Paused, request: ResumeSandbox): Promise<Running> {
  const { sandboxes } = parts;
  const { sandboxId, record } = paused;
  using _room = await parts.admitAgain(record, request);
  const resuming = sandboxes.transition(paused, {
    kind: 'resuming',
    sandboxId,
    record,
    nextExecutionId: request.nextExecutionId,
  });
  const started = await parts.startAgain(record, request).catch((error: unknown) => ({ error, record }));
  if ('error' in started) {
    sandboxes.transition(resuming, { kind: 'paused', sandboxId, record: started.record });
    throw started.error;
  }
  const running = sandboxes.transition(resuming, runningState(started));
  endWithProcesses(parts, running);
  return running;
}

function runningState({ record, processes }: StartedSandbox): Running {
  const { sandboxId, network } = record;
  return { kind: 'running', sandboxId, record, processes, policyInForce: network, diskFailed: false };
}
