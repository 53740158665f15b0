import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { EndReason, ExecutionRef, OwnEnd } from '../../../protocol/node.ts';
import type { Drivers } from '../../drivers/drivers.ts';
import type { SandboxLogs } from '../../logs/sandbox-logs.ts';
import type { Incidents } from '../incidents.ts';
import type { KeepSource } from '../keep/keep-sandbox.ts';
import type { KeptFiles } from '../keep/kept.ts';
import type { PausedRecord } from '../records/record.ts';
import type { Records } from '../records/record-store.ts';
import type { Cleanups } from '../slot/cleanups.ts';
import type { ProcessControl, Processes } from '../slot/processes.ts';
import type { SlotHost } from '../slot/slot-host.ts';
import type { Ending, Frozen, Paused, Running, Unreadable } from '../state/sandbox-state.ts';
import type { Sandboxes } from '../state/sandboxes.ts';
import { freeProcesses } from './frozen.ts';

/** What ending sandboxes needs. */
export type EndParts = {
  sandboxes: Sandboxes;
  records: Pick<Records, 'forget' | 'remove'>;
  processControl: Pick<ProcessControl, 'end' | 'release'>;
  /** Why memory that should have come to a slot is lost; see snapshot/later-memory.ts. */
  whyMemoryLost(slotName: string): Promise<string | undefined>;
  /** See keep/keep-sandbox.ts. */
  keepFilesOfEnded(source: KeepSource): Promise<PausedRecord>;
  kept: Pick<KeptFiles, 'writeChecksums'>;
  slotHost: Pick<SlotHost, 'empty' | 'give'>;
  cleanups: Pick<Cleanups, 'begin'>;
  logs: Pick<SandboxLogs, 'write' | 'catchUp' | 'leave'>;
  incidents: Pick<Incidents, 'report'>;
  log: Log;
};

/** What killing sandboxes needs, including those that are out of reach. */
export type KillParts = EndParts & { drivers: Pick<Drivers, 'keepersOf'> };

type Reason = EndReason | OwnEnd;

/** Time between two attempts to end a sandbox. */
const retryDelayMs = 1_000;

const endings: Record<Reason, { level: 'info' | 'error'; text: string }> = {
  asked: { level: 'info', text: 'killed' },
  timed_out: { level: 'info', text: 'ended: its time was over' },
  out_of_memory: { level: 'error', text: 'ended: its memory was used up' },
  init_exited: { level: 'error', text: 'ended by itself: its first process ended' },
};

/**
 * Ends a sandbox, running or paused, and settles when none of its processes is left and nobody can reach it any more;
 * what it held of the host is gone soon after (see slot/cleanups.ts). Waits for earlier requests for the sandbox. A
 * sandbox that is not here is already gone, and another execution stays.
 */
export async function killSandbox(parts: KillParts, target: ExecutionRef, reason: EndReason = 'asked'): Promise<void> {
  const { sandboxes } = parts;
  await sandboxes.inTurn(target.sandboxId, async () => {
    const state = sandboxes.get(target.sandboxId);
    // If the record is damaged, nobody can say whether it is this execution: the operator decides.
    if (state?.kind === 'unreadable' && state.record?.executionId === target.executionId)
      return endUnreadable(parts, state);
    // A removal that failed before is tried again.
    const isHere =
      state?.kind === 'running' || state?.kind === 'paused' || state?.kind === 'frozen' || state?.kind === 'ending';
    if (isHere && state.record.executionId === target.executionId) await end(parts, state, reason);
  });
}

/**
 * Removes everything of a sandbox that is out of reach, whatever of it still runs. To be called in its turn; a failed
 * call can be repeated.
 */
export async function endUnreadable(parts: KillParts, unreadable: Unreadable): Promise<void> {
  const { sandboxes, records, slotHost, drivers } = parts;
  const { sandboxId, slot } = unreadable;
  records.forget(sandboxId);
  if (slot) await slotHost.empty(slot, drivers.keepersOf(slot.number));
  await records.remove(sandboxId);
  // Given back only once: right after this it belongs to another sandbox.
  if (slot) slotHost.give(slot);
  sandboxes.remove(unreadable);
}

/**
 * Ends a sandbox when its processes end unasked, and records that among the incidents. If missing memory ended it, it
 * is paused with its files.
 */
export function endWithProcesses(parts: EndParts, { sandboxId, processes }: Running): void {
  const { sandboxes, incidents, log } = parts;
  const ended = async () => {
    const state = sandboxes.get(sandboxId);
    // A pause or a kill that was under way has ended them.
    if (state?.kind !== 'running' || state.processes !== processes) return;
    const why = await lossOf(parts, processes);
    if (why !== undefined) return pauseEnded(parts, state, why);
    const reason = processes.driver.outOfMemoryKills(processes.slot) > 0 ? 'out_of_memory' : 'init_exited';
    const { executionId } = state.record;
    await end(parts, state, reason).catch(error =>
      log.error('a sandbox that ended could not be removed', { sandboxId, error: messageOf(error) }),
    );
    incidents.report({ sandboxId, executionId, reason });
  };
  void processes.ended.then(() => sandboxes.react(sandboxId, ended));
}

/** Why its memory did not come; undefined if something else ended it. */
async function lossOf({ whyMemoryLost }: EndParts, { slot }: Processes): Promise<string | undefined> {
  try {
    return await whyMemoryLost(slot.name);
  } catch (error) {
    return messageOf(error); // better to keep its files than nothing
  }
}

/** To be called in its turn. If there is no room to keep it now, tries again until somebody kills the sandbox. */
async function pauseEnded(parts: EndParts, running: Running, why: string): Promise<void> {
  const { sandboxes, logs, log, incidents } = parts;
  const { sandboxId, record, processes } = running;
  const pausing = sandboxes.transition(running, { kind: 'pausing', sandboxId, record, processes });
  try {
    const kept = await parts.keepFilesOfEnded(running);
    sandboxes.transition(pausing, { kind: 'paused', sandboxId, record: kept });
  } catch (error) {
    log.error('a sandbox that has lost its memory could not be paused yet', { sandboxId, error: messageOf(error) });
    const again = sandboxes.transition(pausing, { ...running });
    const retry = async () => {
      if (sandboxes.get(sandboxId) === again) await pauseEnded(parts, again, why);
    };
    return void setTimeout(() => void sandboxes.react(sandboxId, retry), retryDelayMs).unref();
  }
  log.error('a sandbox has lost memory that was to come, and is paused with its files', { sandboxId, why });
  await logs.leave(sandboxId);
  const text = 'paused with its files: its memory could not all be brought back';
  logs.write(sandboxId, 'error', 'sandbox', text, { event: 'paused', kept: 'filesystem' });
  processes.driver.killFrozen(processes.slot);
  await freeProcesses(parts, sandboxId, processes);
  incidents.report({ sandboxId, executionId: record.executionId, reason: 'memory_lost' });
}

/** Ends a sandbox. A failed end is tried again later, even if nobody asks for it any more. */
async function end(parts: EndParts, state: Running | Paused | Frozen | Ending, reason: Reason): Promise<void> {
  try {
    await endNow(parts, state, reason);
  } catch (error) {
    // The first failure has already scheduled the next attempt.
    if (state.kind !== 'ending') endLater(parts, state.sandboxId, reason);
    throw error;
  }
}

function endLater(parts: EndParts, sandboxId: string, reason: Reason): void {
  const { sandboxes, log } = parts;
  const again = async () => {
    const state = sandboxes.get(sandboxId);
    if (state?.kind !== 'ending') return; // a kill has done it
    await endNow(parts, state, reason).catch((error: unknown) => {
      log.error('a sandbox that is to end can not be removed', { sandboxId, error: messageOf(error) });
      endLater(parts, sandboxId, reason);
    });
  };
  setTimeout(() => void sandboxes.react(sandboxId, again), retryDelayMs).unref();
}

/**
 * Ends a sandbox, or continues an end that failed. The record goes first: whatever a crash leaves after that belongs
 * to nobody, and the next start removes it. What the processes held of the host, including the disk, is removed right
 * after.
 */
async function endNow(parts: EndParts, state: Running | Paused | Frozen | Ending, reason: Reason): Promise<void> {
  const { sandboxes, records, processControl, logs } = parts;
  const { sandboxId, record } = state;
  const processes = state.kind === 'paused' ? null : state.processes;
  const ending =
    state.kind === 'ending' ? state : sandboxes.transition(state, { kind: 'ending', sandboxId, record, processes });
  if (state.kind === 'running') {
    await logs.catchUp(sandboxId);
    // The log follower holds the network that is about to go.
    await logs.leave(sandboxId);
  }
  records.forget(sandboxId);
  if (state.kind === 'frozen') state.processes.driver.killFrozen(state.processes.slot);
  if (processes) {
    await processControl.end(processes);
    cleanUp(parts, sandboxId, processes);
  } else await records.remove(sandboxId);
  sandboxes.remove(ending);
  const { level, text } = endings[reason];
  logs.write(sandboxId, level, 'sandbox', text, { event: 'ended', reason });
}

function cleanUp({ records, slotHost, cleanups }: EndParts, sandboxId: string, { slot, driver }: Processes): void {
  cleanups.begin(slot.name, async () => {
    await slotHost.empty(slot, [driver]);
    await records.remove(sandboxId);
    slotHost.give(slot);
  });
}
