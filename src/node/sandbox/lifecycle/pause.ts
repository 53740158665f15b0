import type { ExecutionRef, PausedSandbox, PauseOptions } from '../../../protocol/node.ts';
import { agentAnswers } from '../../agent-client/answers.ts';
import type { SandboxLogs } from '../../logs/sandbox-logs.ts';
import type { KeepSource, KeepWhat } from '../keep/keep-sandbox.ts';
import type { PausedRecord } from '../records/record.ts';
import type { Running } from '../state/sandbox-state.ts';
import { freeProcesses, freeze, type FrozenParts } from './frozen.ts';

/** What pausing sandboxes needs. */
export type PauseParts = FrozenParts & {
  /** See keep/keep-sandbox.ts. */
  keep(source: KeepSource, what: KeepWhat): Promise<PausedRecord>;
  logs: Pick<SandboxLogs, 'write' | 'catchUp' | 'leave'>;
};

/**
 * Pauses a sandbox; the same execution is paused once, however often this is called. Errors: those of
 * `NodeProtocol.pause`.
 */
export async function pauseSandbox(
  parts: PauseParts,
  target: ExecutionRef,
  options: PauseOptions,
): Promise<PausedSandbox> {
  const { sandboxes } = parts;
  const known = sandboxes.findPaused(target);
  if (known) return pausedSummaryOf(known.record);
  sandboxes.requireProcesses(target);
  return sandboxes.inTurn(target.sandboxId, async () => {
    const paused = sandboxes.findPaused(target);
    if (paused) return pausedSummaryOf(paused.record);
    const running = sandboxes.requireRunning(target);
    const agentUnresponsive = await isAgentSilent(running, options);
    return pausedSummaryOf(await pause(parts, running, { memory: options.memory, agentUnresponsive }));
  });
}

/**
 * Whether the agent does not answer; false if nobody wants to know. Errors: `unavailable` if it must answer and does
 * not.
 */
async function isAgentSilent({ processes }: Running, { requireAgent, noteAgent }: PauseOptions): Promise<boolean> {
  if (!requireAgent && !noteAgent) return false;
  try {
    await agentAnswers(processes.namespace);
    return false;
  } catch (error) {
    if (requireAgent) throw error;
    return true;
  }
}

/** The answer about a paused sandbox. */
export function pausedSummaryOf(record: PausedRecord): PausedSandbox {
  const { sandboxId, executionId, kept, pausedAtMs, agentUnresponsive } = record;
  return { sandboxId, executionId, kept, pausedAtMs, ...(agentUnresponsive && { agentUnresponsive }) };
}

async function pause(parts: PauseParts, running: Running, what: KeepWhat): Promise<PausedRecord> {
  const { sandboxes, logs } = parts;
  const { sandboxId, record, processes } = running;
  const pausing = sandboxes.transition(running, { kind: 'pausing', sandboxId, record, processes });
  let kept: PausedRecord;
  try {
    if (!what.memory) await logs.catchUp(sandboxId);
    kept = await parts.keep(running, what);
  } catch (error) {
    sandboxes.transition(pausing, { ...running });
    throw error;
  }
  // From here on the sandbox is paused, whatever happens.
  if (kept.frozen) freeze(parts, pausing, kept, processes);
  else sandboxes.transition(pausing, { kind: 'paused', sandboxId, record: kept });
  await logs.leave(sandboxId);
  const silent = kept.agentUnresponsive ? ', while its agent did not answer' : '';
  const text = kept.kept === 'memory' ? `paused with its memory${silent}` : 'paused with its files';
  logs.write(sandboxId, 'info', 'sandbox', text, { event: 'paused', kept: kept.kept });
  if (kept.frozen) return kept;
  processes.driver.killFrozen(processes.slot);
  await freeProcesses(parts, sandboxId, processes);
  return kept;
}
