import { existsSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Records } from '../records/record-store.ts';

/** Where a paused sandbox keeps its memory. */
export function memoryOf(records: Records, sandboxId: string): string {
  return join(records.keptOf(sandboxId), 'memory');
}

/** Removes the files from while memory is written and after its use, but not the memory itself. */
export async function removeOldMemory(records: Records, sandboxId: string): Promise<void> {
  const memory = memoryOf(records, sandboxId);
  for (const directory of [`${memory}.partial`, staleOf(memory)]) await rm(directory, { recursive: true, force: true });
}

/** Removes all kept memory of a running sandbox. */
export async function removeMemory(records: Records, sandboxId: string): Promise<void> {
  await rm(memoryOf(records, sandboxId), { recursive: true, force: true });
  await removeOldMemory(records, sandboxId);
}

/**
 * Puts away the memory of a sandbox that was resumed: it is stale. Nobody waits for its removal, which may take long.
 */
export async function discardMemory(records: Records, sandboxId: string, log: Log): Promise<void> {
  const memory = memoryOf(records, sandboxId);
  if (!existsSync(memory)) return;
  const stale = staleOf(memory);
  await rm(stale, { recursive: true, force: true });
  renameSync(memory, stale);
  void rm(stale, { recursive: true, force: true }).catch(error => {
    log.warn('the memory of a resumed sandbox could not be deleted', { sandboxId, error: messageOf(error) });
  });
}

const staleOf = (memory: string) => `${memory}.stale`;
