import type { Paused } from '../state/sandbox-state.ts';
import type { Sandboxes } from '../state/sandboxes.ts';
import type { KeptFiles } from './kept.ts';

/** Writes the checksums of a paused sandbox if it has none. Answers its state after that. To be called in its turn. */
export async function underChecksums(
  { sandboxes, kept }: { sandboxes: Sandboxes; kept: KeptFiles },
  paused: Paused,
): Promise<Paused> {
  const { sandboxId } = paused;
  if (kept.hasChecksums(sandboxId)) return paused;
  const record = await kept.judgeMemory(paused.record);
  const judged = sandboxes.transition(paused, { ...paused, record });
  await kept.writeLateChecksums(sandboxId, record.kept);
  return judged;
}
