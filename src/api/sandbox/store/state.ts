import type { Selectable } from 'kysely';
import { formatTime } from '../../../base/time.ts';
import { occupyingStates, type SandboxState } from '../../../protocol/state.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { prepared } from '../../database/prepared.ts';
import type { Tables } from '../../database/schema.ts';
import { asItWas, type AsItWas } from './as-it-was.ts';
import { freeKey, settleKey } from './idempotency.ts';
import { recordPastSandbox } from './past.ts';
import { recordSandboxEvent } from './events.ts';
import type { KillReason } from './events.ts';
import { factsOfRow, listedColumnNames, listedOfRow, sandboxColumnNames, sandboxOfRow } from './row.ts';
import type { ListedSandbox, SandboxFacts, SandboxRecord } from '../record.ts';

/**
 * Changes of a sandbox's state. Each names the execution and the states it may leave, and answers null when the row is
 * not (any more) like that: whoever changes the row first wins, and a late command can't hit a successor.
 */

/**
 * `starting` → `running`: the sandbox answers, and its template counts one more use. With `forkOf`, both get an event;
 * a `key` stands for the sandbox from here on.
 */
export async function publishSandbox(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  times: { startedAtUs: number; endAtUs: number },
  { forkOf, key }: { forkOf?: SandboxRecord | undefined; key?: string | undefined } = {},
): Promise<SandboxRecord | null> {
  return inTransaction(db, async db => {
    const { sandboxId, executionId } = execution;
    const [row] = await begin(db, { sandboxId, executionId, ...times });
    if (!row) return null;
    const sandbox = sandboxOfRow(row);
    if (key !== undefined) await settleKey(db, sandbox.teamId, key);
    const atUs = times.startedAtUs;
    // Last, because from here on all creates from this template wait for each other.
    const use = countUse.queryOf(db, { templateId: row.template_id, atUs });
    if (forkOf) {
      await recordSandboxEvent(db, sandbox, { type: 'created', atUs, data: { forked_from: forkOf.sandboxId } });
      await recordSandboxEvent(db, forkOf, { type: 'forked', atUs, data: { fork_id: sandbox.sandboxId } }, [use]);
    } else await recordSandboxEvent(db, sandbox, { type: 'created', atUs }, [use]);
    return sandbox;
  });
}

type Execution = { sandboxId: string; executionId: string };
type Row = Selectable<Tables['sandboxes']>;

const begin = prepared<Execution & { startedAtUs: number; endAtUs: number }, Row>((db, parameter) =>
  db
    .updateTable('sandboxes')
    .set({
      state: 'running',
      replica_id: null,
      started_at_us: parameter('startedAtUs'),
      end_at_us: parameter('endAtUs'),
    })
    .where('sandbox_id', '=', parameter('sandboxId'))
    .where('execution_id', '=', parameter('executionId'))
    .where('state', '=', 'starting')
    .returning(sandboxColumnNames),
);

const countUse = prepared<{ templateId: string; atUs: number }>((db, parameter) =>
  db
    .updateTable('templates')
    .set(update => ({ spawn_count: update('spawn_count', '+', 1), last_spawned_at_us: parameter('atUs') }))
    .where('template_id', '=', parameter('templateId')),
);

/** Changes a sandbox's state from one of `from` to `to`; `replicaId` works on it from here on. */
export async function moveSandbox(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  from: readonly SandboxState[],
  to: SandboxState,
  replicaId: string,
): Promise<SandboxRecord | null> {
  const { sandboxId, executionId } = execution;
  const [row] = await move(db, { sandboxId, executionId, to, replicaId }, from);
  return row ? sandboxOfRow(row) : null;
}

const move = prepared<Execution & { to: SandboxState; replicaId: string }, Row, SandboxState>((db, parameter, from) =>
  db
    .updateTable('sandboxes')
    .set({ state: parameter('to'), replica_id: parameter('replicaId') })
    .where('sandbox_id', '=', parameter('sandboxId'))
    .where('execution_id', '=', parameter('executionId'))
    .where('state', 'in', from)
    .returning(sandboxColumnNames),
);

/**
 * `running` → `killing`, if its time is over by `nowUs`: a timeout that was extended meanwhile wins. Reads nothing that
 * may be long, except what its event contains.
 */
export async function expireSandbox(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  nowUs: number,
  replicaId: string,
): Promise<SandboxFacts | null> {
  return inTransaction(db, async db => {
    const row = await db
      .updateTable('sandboxes')
      .set({ state: 'killing', replica_id: replicaId })
      .where('sandbox_id', '=', execution.sandboxId)
      .where('execution_id', '=', execution.executionId)
      .where('state', '=', 'running')
      .where('end_at_us', '<=', nowUs)
      .returning(listedColumnNames)
      .executeTakeFirst();
    if (!row) return null;
    await writeKilled(db, listedOfRow(row), { reason: 'timeout', atUs: nowUs });
    return factsOfRow(row);
  });
}

/**
 * One of `from` → `killing`, because somebody asked for it. From here on the sandbox can't be reached, and there is no
 * way back.
 */
export async function markSandboxForKill(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  from: readonly SandboxState[],
  nowUs: number,
  replicaId: string,
): Promise<SandboxRecord | null> {
  return inTransaction(db, async db => {
    const sandbox = await moveSandbox(db, execution, from, 'killing', replicaId);
    if (sandbox) await writeKilled(db, sandbox, { reason: 'request', atUs: nowUs });
    return sandbox;
  });
}

/**
 * Sets when a sandbox that runs or is being moved expires. With `onlyLater`, an earlier time leaves the row unchanged
 * (and answers it).
 */
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
      .where('state', 'in', ['running', 'moving'])
      .returningAll();
    const row = await running
      .set({ end_at_us: endAtUs })
      .where('end_at_us', onlyLater ? '<' : '!=', endAtUs)
      .executeTakeFirst();
    if (row) {
      const changed = sandboxOfRow(row);
      await recordSandboxEvent(db, changed, {
        type: 'updated',
        atUs: nowUs,
        data: { set_timeout: formatTime(endAtUs) },
      });
      return changed;
    }
    // An update that changes nothing: a plain read could answer a row that another transaction is just changing.
    const same = await running.set(update => ({ end_at_us: update.ref('end_at_us') })).executeTakeFirst();
    return same ? sandboxOfRow(same) : null;
  });
}

/**
 * Removes the row of an execution that has ended, if it is in one of `from`. Its owner is remembered for a while; an
 * end that was not reported yet is reported now.
 */
export async function deleteSandbox(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  from: readonly SandboxState[],
  ended: { reason: KillReason; atUs: number },
): Promise<boolean> {
  return inTransaction(db, async db => {
    const { sandboxId, executionId } = execution;
    const [row] = await remove(db, { sandboxId, executionId }, from);
    if (row) await recordEnd(db, row, ended);
    return row !== undefined;
  });
}

/** The same for one that nobody else has gone on with since it was read: its node has nothing of it. */
export async function deleteLost(db: Db, sandbox: AsItWas, atUs: number): Promise<boolean> {
  return inTransaction(db, async db => {
    const row = await db.deleteFrom('sandboxes').where(asItWas(sandbox)).returningAll().executeTakeFirst();
    if (row) await recordEnd(db, row, { reason: 'lost', atUs });
    return row !== undefined;
  });
}

/**
 * Takes back a create that may have been published: removes its row and what its `key` stands for, even if somebody
 * else has ended the sandbox meanwhile.
 */
export async function undoPublish(
  db: Db,
  sandbox: Pick<SandboxRecord, 'sandboxId' | 'executionId' | 'teamId'>,
  key: string | undefined,
  atUs: number,
): Promise<void> {
  await inTransaction(db, async db => {
    if (key !== undefined) await freeKey(db, sandbox, key);
    await deleteSandbox(db, sandbox, occupyingStates, { reason: 'failed', atUs });
  });
}

async function recordEnd(db: Db, row: Row, ended: { reason: KillReason; atUs: number }): Promise<void> {
  if (row.state !== 'starting' && row.state !== 'killing') await writeKilled(db, sandboxOfRow(row), ended);
  const { sandbox_id, team_id, node_id } = row;
  await recordPastSandbox(db, { sandbox_id, team_id, node_id, ended_at_us: ended.atUs });
}

const remove = prepared<Execution, Row, SandboxState>((db, parameter, from) =>
  db
    .deleteFrom('sandboxes')
    .where('sandbox_id', '=', parameter('sandboxId'))
    .where('execution_id', '=', parameter('executionId'))
    .where('state', 'in', from)
    .returning(sandboxColumnNames),
);

async function writeKilled(
  db: Db,
  sandbox: ListedSandbox,
  { reason, atUs }: { reason: KillReason; atUs: number },
): Promise<void> {
  await recordSandboxEvent(db, sandbox, { type: 'killed', atUs, data: { kill_reason: reason } });
}
