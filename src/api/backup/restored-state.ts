import type { Transaction } from 'kysely';
import type { Tables } from '../database/schema.ts';
import { deleteSandbox } from '../sandbox/store/state.ts';
import type { BuildConfig } from '../build/record.ts';

/**
 * Makes restored state say what was restored with it: of sandboxes those that are kept, paused, with their files; of
 * snapshots, and of templates with a start command, the files. What is gone is reported as lost.
 */
export async function forgetUnkept(
  db: Transaction<Tables>,
  keptSandboxes: readonly string[],
  nowUs: number,
): Promise<void> {
  const kept = new Set(keptSandboxes);
  const sandboxes = await db.selectFrom('sandboxes').select(['sandbox_id', 'execution_id', 'state']).execute();
  for (const { sandbox_id: sandboxId, execution_id: executionId, state } of sandboxes) {
    if (kept.has(sandboxId) && state === 'paused') continue;
    await deleteSandbox(db, { sandboxId, executionId }, [state], { reason: 'lost', atUs: nowUs });
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
