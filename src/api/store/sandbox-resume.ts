import { inTransaction } from './database.ts';
import type { Db, Store } from './database.ts';
import { countOccupied } from './sandbox-create.ts';
import { recordSandboxEvent } from './sandbox-events.ts';
import { sandboxOfRow } from './sandbox-row.ts';
import type { SandboxRecord } from './sandbox-row.ts';

type Execution = { sandboxId: string; executionId: string };

/**
 * `paused` → `resuming`, unless the team already occupies `concurrentMax` places. Null when it is not paused as that
 * execution (any more).
 */
export async function beginResume(
  store: Store,
  sandbox: Execution & { teamId: string },
  nextExecutionId: string,
  concurrentMax: number,
): Promise<SandboxRecord | 'full' | null> {
  return store.db.transaction().execute(async db => {
    // As for creates: counting and moving take turns within a team.
    if (store.kind === 'postgres') {
      await db.selectFrom('teams').select('team_id').where('team_id', '=', sandbox.teamId).forUpdate().execute();
    }
    if ((await countOccupied(db, sandbox.teamId)) >= concurrentMax) return 'full';
    const row = await db
      .updateTable('sandboxes')
      .set({ state: 'resuming', next_execution_id: nextExecutionId })
      .where('sandbox_id', '=', sandbox.sandboxId)
      .where('execution_id', '=', sandbox.executionId)
      .where('state', '=', 'paused')
      .returningAll()
      .executeTakeFirst();
    return row ? sandboxOfRow(row) : null;
  });
}

/** `resuming` → `running` as the next execution. Null when it is not being resumed as that (any more). */
export async function finishResume(
  db: Db,
  sandbox: Execution & { nextExecutionId: string },
  run: { startedAtUs: number; endAtUs: number; autoPause?: boolean },
): Promise<SandboxRecord | null> {
  return inTransaction(db, async db => {
    const row = await db
      .updateTable('sandboxes')
      .set({
        state: 'running',
        execution_id: sandbox.nextExecutionId,
        next_execution_id: null,
        kept: null,
        started_at_us: run.startedAtUs,
        end_at_us: run.endAtUs,
        ...(run.autoPause !== undefined && { auto_pause: run.autoPause ? (1 as const) : (0 as const) }),
      })
      .where('sandbox_id', '=', sandbox.sandboxId)
      .where('execution_id', '=', sandbox.executionId)
      .where('next_execution_id', '=', sandbox.nextExecutionId)
      .where('state', '=', 'resuming')
      .returningAll()
      .executeTakeFirst();
    if (!row) return null;
    const resumed = sandboxOfRow(row);
    await recordSandboxEvent(db, resumed, { type: 'resumed', atUs: run.startedAtUs });
    return resumed;
  });
}

/** `resuming` → `paused`, as it was. */
export async function cancelResume(db: Db, sandbox: Execution & { nextExecutionId: string }): Promise<SandboxRecord | null> {
  const row = await db
    .updateTable('sandboxes')
    .set({ state: 'paused', next_execution_id: null })
    .where('sandbox_id', '=', sandbox.sandboxId)
    .where('execution_id', '=', sandbox.executionId)
    .where('next_execution_id', '=', sandbox.nextExecutionId)
    .where('state', '=', 'resuming')
    .returningAll()
    .executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}
