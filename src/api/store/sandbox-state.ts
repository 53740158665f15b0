import { formatTime } from '../../base/time.ts';
import type { SandboxState } from '../../protocol/state.ts';
import { inTransaction } from './database.ts';
import type { Db, Store } from './database.ts';
import { notePastSandbox } from './past-sandbox.ts';
import { recordSandboxEvent } from './sandbox-events.ts';
import type { KillReason } from './sandbox-events.ts';
import { sandboxOfRow } from './sandbox-row.ts';
import type { SandboxRecord } from './sandbox-row.ts';

/**
 * Changes of a sandbox's state. Each names the execution and the states it may leave, and answers null when the
 * row is not (any more) as named: whoever moves the row first wins, and a late command can't hit a successor.
 */

/** `starting` → `running`: the sandbox answers, and its template counts one more use. With `forkOf`, both are told of. */
export async function publishSandbox(
  store: Store,
  execution: { sandboxId: string; executionId: string },
  times: { startedAtUs: number; endAtUs: number },
  forkOf?: SandboxRecord,
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
    const sandbox = sandboxOfRow(row);
    const atUs = times.startedAtUs;
    await recordSandboxEvent(db, sandbox, { type: 'created', atUs, ...(forkOf && { data: { forked_from: forkOf.sandboxId } }) });
    if (forkOf) await recordSandboxEvent(db, forkOf, { type: 'forked', atUs, data: { fork_id: sandbox.sandboxId } });
    return sandbox;
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
  return inTransaction(db, async db => {
    const row = await db
      .updateTable('sandboxes')
      .set({ state: 'killing' })
      .where('sandbox_id', '=', execution.sandboxId)
      .where('execution_id', '=', execution.executionId)
      .where('state', '=', 'running')
      .where('end_at_us', '<=', nowUs)
      .returningAll()
      .executeTakeFirst();
    return row ? tellKilled(db, sandboxOfRow(row), { reason: 'timeout', atUs: nowUs }) : null;
  });
}

/** One of `from` → `killing`, because somebody asked for it. From here on it can't be reached, and there is no way back. */
export async function condemnSandbox(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  from: readonly SandboxState[],
  nowUs: number,
): Promise<SandboxRecord | null> {
  return inTransaction(db, async db => {
    const sandbox = await moveSandbox(db, execution, from, 'killing');
    return sandbox && tellKilled(db, sandbox, { reason: 'request', atUs: nowUs });
  });
}

/** Sets when a running sandbox expires. With `onlyLater`, an earlier time leaves the row as it is (and answers it). */
export async function setSandboxEnd(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  end: { endAtUs: number; onlyLater: boolean; nowUs: number },
): Promise<SandboxRecord | null> {
  const { endAtUs, onlyLater, nowUs } = end;
  return inTransaction(db, async db => {
    const running = db
      .updateTable('sandboxes')
      .where('sandbox_id', '=', execution.sandboxId)
      .where('execution_id', '=', execution.executionId)
      .where('state', '=', 'running')
      .returningAll();
    const row = await running
      .set({ end_at_us: endAtUs })
      .where('end_at_us', onlyLater ? '<' : '!=', endAtUs)
      .executeTakeFirst();
    if (row) {
      const changed = sandboxOfRow(row);
      await recordSandboxEvent(db, changed, { type: 'updated', atUs: nowUs, data: { set_timeout: formatTime(endAtUs) } });
      return changed;
    }
    // An update that changes nothing: as a plain read, it could answer a row that another transaction is just leaving.
    const same = await running.set(update => ({ end_at_us: update.ref('end_at_us') })).executeTakeFirst();
    return same ? sandboxOfRow(same) : null;
  });
}

/** Removes the row of an execution that is no more, if it is in one of `from`. Whose it was is kept for a while; an end that nobody was told of is told now. */
export async function deleteSandbox(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  from: readonly SandboxState[],
  ended: { reason: KillReason; atUs: number },
): Promise<boolean> {
  return inTransaction(db, async db => {
    const row = await db
      .deleteFrom('sandboxes')
      .where('sandbox_id', '=', execution.sandboxId)
      .where('execution_id', '=', execution.executionId)
      .where('state', 'in', from)
      .returningAll()
      .executeTakeFirst();
    if (row && row.state !== 'starting' && row.state !== 'killing') await tellKilled(db, sandboxOfRow(row), ended);
    if (row) await notePastSandbox(db, { sandbox_id: row.sandbox_id, team_id: row.team_id, node_id: row.node_id });
    return row !== undefined;
  });
}

async function tellKilled(db: Db, sandbox: SandboxRecord, { reason, atUs }: { reason: KillReason; atUs: number }): Promise<SandboxRecord> {
  await recordSandboxEvent(db, sandbox, { type: 'killed', atUs, data: { kill_reason: reason } });
  return sandbox;
}
