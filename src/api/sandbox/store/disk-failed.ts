import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { recordSandboxEvent } from './events.ts';
import { sandboxOfRow } from './row.ts';

/** Writes an event that the disk of a running sandbox has failed. False: the execution is over. */
export async function recordDiskFailed(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  atUs: number,
): Promise<boolean> {
  return inTransaction(db, async db => {
    // The row stays unchanged; the update locks it, which gives the event its place among those of other changes.
    const row = await db
      .updateTable('sandboxes')
      .set({ execution_id: execution.executionId })
      .where('sandbox_id', '=', execution.sandboxId)
      .where('execution_id', '=', execution.executionId)
      .where('state', 'in', ['running', 'snapshotting', 'pausing'])
      .returningAll()
      .executeTakeFirst();
    if (!row) return false;
    await recordSandboxEvent(db, sandboxOfRow(row), { type: 'disk_failed', atUs });
    return true;
  });
}
