import type { SandboxState } from '../../protocol/state.ts';
import type { Db, Store } from './database.ts';
import { notePastSandbox } from './past-sandbox.ts';
import { sandboxOfRow } from './sandbox-row.ts';
import type { SandboxRecord } from './sandbox-row.ts';

/**
 * Changes of a sandbox's state. Each names the execution and the states it may leave, and answers null when the
 * row is not (any more) as named: whoever moves the row first wins, and a late command can't hit a successor.
 */

/** `starting` → `running`: the sandbox answers, and its template counts one more use. */
export async function publishSandbox(
  store: Store,
  execution: { sandboxId: string; executionId: string },
  times: { startedAtUs: number; endAtUs: number },
): Promise<SandboxRecord | null> {
  return store.db.transaction().execute(async db => {
    const row = await db
      .updateTable('sandboxes')
      .set({ state: 'running', started_at_us: times.startedAtUs, end_at_us: times.endAtUs })
      .where('sandbox_id', '=', execution.sandboxId)
      .where('execution_id', '=', execution.executionId)
      .where('state', '=', 'starting')
      .returningAll()
      .executeTakeFirst();
    if (!row) return null;
    await db
      .updateTable('templates')
      .set(update => ({ spawn_count: update('spawn_count', '+', 1), last_spawned_at_us: times.startedAtUs }))
      .where('template_id', '=', row.template_id)
      .execute();
    return sandboxOfRow(row);
  });
}

/** Moves a sandbox from one of `from` to `to`. */
export async function moveSandbox(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  from: readonly SandboxState[],
  to: SandboxState,
): Promise<SandboxRecord | null> {
  const row = await db
    .updateTable('sandboxes')
    .set({ state: to })
    .where('sandbox_id', '=', execution.sandboxId)
    .where('execution_id', '=', execution.executionId)
    .where('state', 'in', from)
    .returningAll()
    .executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}

/** `running` → `killing`, if its time is over by `nowUs`: a timeout that was extended meanwhile wins. */
export async function expireSandbox(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  nowUs: number,
): Promise<SandboxRecord | null> {
  const row = await db
    .updateTable('sandboxes')
    .set({ state: 'killing' })
    .where('sandbox_id', '=', execution.sandboxId)
    .where('execution_id', '=', execution.executionId)
    .where('state', '=', 'running')
    .where('end_at_us', '<=', nowUs)
    .returningAll()
    .executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}

/** Sets when a running sandbox expires. With `onlyLater`, an earlier time leaves the row as it is (and answers it). */
export async function setSandboxEnd(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  endAtUs: number,
  onlyLater: boolean,
): Promise<SandboxRecord | null> {
  const row = await db
    .updateTable('sandboxes')
    .set(update => ({
      end_at_us: onlyLater
        ? update.case().when('end_at_us', '<', endAtUs).then(update.cast<number>(update.val(endAtUs), 'bigint')).else(update.ref('end_at_us')).end()
        : endAtUs,
    }))
    .where('sandbox_id', '=', execution.sandboxId)
    .where('execution_id', '=', execution.executionId)
    .where('state', '=', 'running')
    .returningAll()
    .executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}

/** Removes the row of an execution that is no more, if it is in one of `from`; whose it was is kept for a while. */
export async function deleteSandbox(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  from: readonly SandboxState[],
): Promise<boolean> {
  const row = await db
    .deleteFrom('sandboxes')
    .where('sandbox_id', '=', execution.sandboxId)
    .where('execution_id', '=', execution.executionId)
    .where('state', 'in', from)
    .returning(['sandbox_id', 'team_id', 'node_id'])
    .executeTakeFirst();
  if (row) await notePastSandbox(db, row);
  return row !== undefined;
}
