import type { Kept } from '../../protocol/node.ts';
import { inTransaction } from './database.ts';
import type { Db } from './database.ts';
import { sandboxOfRow, rowOfSandbox } from './sandbox-row.ts';
import type { SandboxRecord } from './sandbox-row.ts';
import type { VolumeRecord } from './volumes.ts';

/** Gives a sandbox that was set aside a row again, paused; one that it has, of another execution, becomes its own. */
export async function putPausedSandbox(db: Db, sandbox: SandboxRecord & { kept: Kept }): Promise<SandboxRecord> {
  return inTransaction(db, async db => {
    const known = await db
      .updateTable('sandboxes')
      .set({ execution_id: sandbox.executionId, state: 'paused', kept: sandbox.kept, next_execution_id: null, node_id: sandbox.nodeId })
      .where('sandbox_id', '=', sandbox.sandboxId)
      .returningAll()
      .executeTakeFirst();
    if (known) return sandboxOfRow(known);
    await db.insertInto('sandboxes').values(rowOfSandbox(sandbox)).execute();
    const volumes = [...new Set(sandbox.volumeMounts.map(({ volumeId }) => volumeId))].map(volumeId => ({ sandbox_id: sandbox.sandboxId, volume_id: volumeId }));
    if (volumes.length > 0) await db.insertInto('sandbox_volumes').values(volumes).execute();
    return sandbox;
  });
}

/** Notes that the content of a volume is nobody's: until it has a row, or after it had one. */
export async function noteVolumeRemoval(db: Db, { volumeId, nodeId }: Pick<VolumeRecord, 'volumeId' | 'nodeId'>, nowUs: number): Promise<void> {
  await db
    .insertInto('volume_removals')
    .values({ volume_id: volumeId, node_id: nodeId, noted_at_us: nowUs })
    .onConflict(conflict => conflict.column('volume_id').doNothing())
    .execute();
}

export async function forgetVolumeRemoval(db: Db, volumeId: string): Promise<void> {
  await db.deleteFrom('volume_removals').where('volume_id', '=', volumeId).execute();
}

/** Volumes of a node whose content is to be removed, with when that was noted. */
export async function volumeRemovalsOn(db: Db, nodeId: string): Promise<{ volumeId: string; notedAtUs: number }[]> {
  const rows = await db.selectFrom('volume_removals').selectAll().where('node_id', '=', nodeId).execute();
  return rows.map(row => ({ volumeId: row.volume_id, notedAtUs: row.noted_at_us }));
}
