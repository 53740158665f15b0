import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { KeptFiles } from '../keep/kept.ts';
import type { PausedRecord } from '../records/record.ts';
import type { Records } from '../records/record-store.ts';
import type { ProcessControl, Processes } from '../slot/processes.ts';
import type { Frozen, Paused, Pausing } from '../state/sandbox-state.ts';
import type { Sandboxes } from '../state/sandboxes.ts';

/** How many sandboxes may be frozen at a time: each still uses its memory. */
const frozenMax = 16;

/** What ending the processes of paused sandboxes needs. */
export type FrozenParts = {
  sandboxes: Sandboxes;
  records: Pick<Records, 'write'>;
  processControl: Pick<ProcessControl, 'release'>;
  kept: Pick<KeptFiles, 'writeChecksums'>;
  /** How long the processes of a paused sandbox stay frozen before they are ended. */
  frozenMs: number;
  log: Log;
};

/** Keeps the frozen processes of a paused sandbox for a while. To be called in its turn. */
export function freeze(parts: FrozenParts, pausing: Pausing, record: PausedRecord, processes: Processes): Frozen {
  const { sandboxes, frozenMs } = parts;
  const { sandboxId } = pausing;
  const timer = setTimeout(() => void endFrozen(parts, sandboxId, processes), frozenMs);
  timer.unref();
  const frozen = sandboxes.transition(pausing, { kind: 'frozen', sandboxId, record, processes, timer });
  // Something else may end them, e.g. the kernel for lack of memory.
  void processes.ended.then(() => endFrozen(parts, sandboxId, processes));
  const [oldest, ...others] = frozenSandboxes(sandboxes);
  if (oldest && others.length >= frozenMax) void endFrozen(parts, oldest.sandboxId, oldest.processes);
  return frozen;
}

/** Ends the frozen processes of a paused sandbox. After that it is only what was kept. To be called in its turn. */
export async function dropFrozen(parts: FrozenParts, frozen: Frozen): Promise<Paused> {
  const { sandboxId, processes } = frozen;
  const record = await recordWithoutProcesses(parts, frozen.record);
  const paused = parts.sandboxes.transition(frozen, { kind: 'paused', sandboxId, record });
  processes.driver.killFrozen(processes.slot);
  await freeProcesses(parts, sandboxId, processes);
  return paused;
}

/**
 * Records that a paused sandbox has no processes any more, before they are ended: they have to run to end, and if the
 * platform crashes then, the next start would take the sandbox for a running one. Processes are ended even if this
 * can't be recorded: they keep no memory in use.
 */
export async function recordWithoutProcesses(
  { records, log }: Pick<FrozenParts, 'records' | 'log'>,
  frozen: PausedRecord,
): Promise<PausedRecord> {
  const record = { ...frozen, frozen: null };
  await records
    .write(record)
    .catch((error: unknown) =>
      log.error('the end of the processes of a paused sandbox could not be recorded', {
        sandboxId: record.sandboxId,
        error: messageOf(error),
      }),
    );
  return record;
}

/**
 * Frees what a paused sandbox used when it ran, and puts the last writes of its kernel on the host's disk. To be
 * called in its turn.
 */
export async function freeProcesses(
  { processControl, kept, log }: Pick<FrozenParts, 'processControl' | 'kept' | 'log'>,
  sandboxId: string,
  processes: Processes,
): Promise<void> {
  // The release repeats by itself if it fails, and the checksums wait for it.
  await processControl
    .release(processes)
    .catch(error => log.error('what a paused sandbox used could not be freed', { sandboxId, error: messageOf(error) }));
  await kept
    .writeChecksums(sandboxId)
    .catch(error => log.error('a paused sandbox has no checksums', { sandboxId, error: messageOf(error) }));
}

/** Frees the memory of all frozen sandboxes. */
export async function dropAllFrozen(parts: FrozenParts): Promise<void> {
  const frozen = frozenSandboxes(parts.sandboxes);
  await Promise.all(frozen.map(({ sandboxId, processes }) => endFrozen(parts, sandboxId, processes)));
}

/** The frozen sandboxes, the longest frozen first. */
function frozenSandboxes(sandboxes: Sandboxes): Frozen[] {
  return [...sandboxes.all()]
    .filter(state => state.kind === 'frozen')
    .sort((a, b) => a.record.pausedAtMs - b.record.pausedAtMs);
}

async function endFrozen(parts: FrozenParts, sandboxId: string, processes: Processes): Promise<void> {
  await parts.sandboxes.react(sandboxId, async () => {
    const state = parts.sandboxes.get(sandboxId);
    if (state?.kind === 'frozen' && state.processes === processes) await dropFrozen(parts, state);
  });
}
