import type { Transaction } from 'kysely';
import type { Tables } from '../database/schema.ts';
import { deleteSandbox } from '../sandbox/store/state.ts';
import { forgetVolumeRemoval } from '../volume/store/removals.ts';
import { deleteVolume, volumeOfRow } from '../volume/store/volumes.ts';
import type { BuildConfig } from '../build/record.ts';

/** What was restored besides the state: sandboxes, and the volumes of the machine with this ID. */
type Kept = { nodeId: string; sandboxes: readonly string[]; volumes: readonly string[] };

/**
 * Makes restored state match what was restored with it. Restored sandboxes are kept, paused with their files;
 * snapshots, and templates with a start command, keep their files; volumes stay if their content is there. Other
 * sandboxes are reported as lost, and other volumes as deleted, because they were deleted while the backup was written.
 */
export async function forgetUnkept(
  db: Transaction<Tables>,
  { nodeId, sandboxes: keptSandboxes, volumes }: Kept,
  nowUs: number,
): Promise<void> {
  const kept = new Set(keptSandboxes);
  const sandboxes = await db.selectFrom('sandboxes').select(['sandbox_id', 'execution_id', 'state']).execute();
  for (const { sandbox_id: sandboxId, execution_id: executionId, state } of sandboxes) {
    if (kept.has(sandboxId) && state === 'paused') continue;
    await deleteSandbox(db, { sandboxId, executionId }, [state], { reason: 'lost', atUs: nowUs });
  }
  for (const row of await db.selectFrom('volumes').selectAll().where('node_id', '=', nodeId).execute()) {
    if (volumes.includes(row.volume_id)) continue;
    await deleteVolume(db, volumeOfRow(row), { shownMax: 1, nowUs });
    await forgetVolumeRemoval(db, { volumeId: row.volume_id, nodeId });
  }
  await db.updateTable('sandboxes').set({ kept: 'filesystem' }).where('kept', '=', 'memory').execute();
  const withMemory = await db
    .selectFrom('builds')
    .select(['build_id', 'config_json'])
    .where('config_json', 'like', '%napshotId%')
    .execute();
  for (const { build_id, config_json } of withMemory) {
    const { memorySnapshotId: _, started: __, ...config } = JSON.parse(config_json) as BuildConfig;
    await db
      .updateTable('builds')
      .set({ config_json: JSON.stringify(config) })
      .where('build_id', '=', build_id)
      .execute();
  }
}
