import type { Kept } from '../../../protocol/node.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { asItWas, type AsItWas } from './as-it-was.ts';
import { columnsOf, rowOfSandbox, sandboxOfRow } from './row.ts';
import type { SandboxRecord } from '../record.ts';

/**
 * Gives a sandbox that was set aside a row again, paused; its existing row `was`, of another execution, is reused. Null
 * where that row is not (any more) as it was read: somebody has gone on with the sandbox.
 */
export async function putPausedSandbox(
  db: Db,
  sandbox: SandboxRecord & { kept: Kept },
  was: AsItWas | null,
): Promise<SandboxRecord | null> {
  if (was) {
    const row = await db
      .updateTable('sandboxes')
      .set({
        execution_id: sandbox.executionId,
        state: 'paused',
        kept: sandbox.kept,
        ...columnsOf({ agentUnresponsive: sandbox.agentUnresponsive }),
        durability: sandbox.durability,
        next_execution_id: null,
        next_node_id: null,
        replica_id: null,
        node_id: sandbox.nodeId,
      })
      .where(asItWas(was))
      .returningAll()
      .executeTakeFirst();
    return row ? sandboxOfRow(row) : null;
  }
  return inTransaction(db, async db => {
    const inserted = await db
      .insertInto('sandboxes')
      .values(rowOfSandbox(sandbox))
      .onConflict(conflict => conflict.column('sandbox_id').doNothing())
      .returning('sandbox_id')
      .executeTakeFirst();
    if (!inserted) return null;
    const volumes = [...new Set(sandbox.volumeMounts.map(({ volumeId }) => volumeId))].map(volumeId => ({
      sandbox_id: sandbox.sandboxId,
      volume_id: volumeId,
    }));
    if (volumes.length > 0) await db.insertInto('sandbox_volumes').values(volumes).execute();
    return sandbox;
  });
}
