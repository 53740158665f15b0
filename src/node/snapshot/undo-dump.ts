import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { killIfThere } from '../../base/if-there.ts';
import { criuKilled, type CriuHost, forgetRun, runFile, sandboxEnded } from './criu.ts';
import { processesWith } from './criu-processes.ts';
import type { CheckpointSource } from './checkpoint-source.ts';

const undoTimeoutMs = 60_000;
/** A dump that goes on without the platform is over by then, even with much memory and on a slow disk. */
const goesOnMs = 15_000;
const lookEveryMs = 20;
/** The helper's answer about a sandbox whose first process has ended, or is about to. */
const endedStatus = 3;

/**
 * Undoes what a failed dump has done to a sandbox. CRIU does that by itself, unless it was killed, or a process of the
 * sandbox was killed under it: then it ends at once, and would leave the sandbox out of reach. Fails with
 * `unavailable`, detail `sandboxEnded`, if the sandbox has ended with a CRIU that was killed.
 */
export async function undoFailed(
  host: CriuHost,
  source: CheckpointSource,
  name: string,
  error: unknown,
): Promise<void> {
  const outcome = await undoDump(host, source, name);
  if (!(error instanceof AtollError) || error.detail !== criuKilled) return;
  forgetRun(host, name);
  if (outcome === 'undone') return;
  throw new AtollError(
    'unavailable',
    'the memory of the sandbox could not be kept: CRIU was killed, and the sandbox’s first process ended with it',
    { detail: sandboxEnded },
  );
}

/**
 * Undoes what CRIU has left in a sandbox: rules that let no packet through, and connections that send nothing. The
 * kernel lets its processes run again by itself. A sandbox that is ending has nothing left to undo.
 */
export async function undoDump(
  host: Pick<CriuHost, 'helper' | 'helperBinary' | 'runDir'>,
  { pid, group }: Pick<CheckpointSource, 'pid' | 'group'>,
  name: string,
): Promise<'undone' | 'ended'> {
  const list = join(host.runDir, `${name}.pids`);
  group.thaw();
  await untilOver(runFile(host, name));
  try {
    writeFileSync(list, group.processes().join('\n'));
    const { status, output } = await host.helper.spawn([host.helperBinary, 'undo-dump', String(pid), list], {
      timeoutMs: undoTimeoutMs,
      kind: 'release',
    });
    if (status === endedStatus) return 'ended';
    if (status === 0) return 'undone';
    throw new AtollError(
      'internal',
      `what a checkpoint that was killed has left in a sandbox could not be undone: ${output.trim()}`,
    );
  } finally {
    rmSync(list, { force: true });
  }
}

/** Waits for a CRIU that went on when the platform ended, and that undoes its own work (native/criu-children.c). */
async function untilOver(config: string): Promise<void> {
  const deadline = performance.now() + goesOnMs;
  for (;;) {
    const left = await processesWith(config);
    if (left.length === 0) return;
    if (performance.now() > deadline) return void left.forEach(killIfThere);
    await Bun.sleep(lookEveryMs);
  }
}
