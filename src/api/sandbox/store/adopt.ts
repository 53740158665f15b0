import type { Kept } from '../../../protocol/node.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { columnsOf, rowOfSandbox, sandboxOfRow } from './row.ts';
import type { SandboxRecord } from '../record.ts';

/** Gives a sandbox that was set aside a row again, paused; one that it has, of another execution, becomes its own. */
export async function putPausedSandbox(db: Db, sandbox: SandboxRecord & { kept: Kept }): Promise<SandboxRecord> {
  return inTransaction(db, async db => {
    const known = await db
      .updateTable('sandboxes')
      .set({
        execution_id: sandbox.executionId,
        state: 'paused',
        kept: sandbox.kept,
        ...columnsOf({ agentUnresponsive: sandbox.agentUnresponsive }),
        next_execution_id: null,
        next_node_id: null,
        replica_id: null,
        node_id: sandbox.nodeId,
      })
      .where('sandbox_id', '=', sandbox.sandboxId)
      .returningAll()
      .executeTakeFirst();
    if (known) return sandboxOfRow(known);
    await db.insertInto('sandboxes').values(rowOfSandbox(sandbox)).execute();
    const volumes = [...new Set(sandbox.volumeMounts.map(({ volumeId }) => volumeId))].map(volumeId => ({
      sandbox_id: sandbox.sandboxId,
      volume_id: volumeId,
    }));
    if (volumes.length > 0) await db.insertInto('sandbox_volumes').values(volumes).execute();
    return sandbox;
  });
}
