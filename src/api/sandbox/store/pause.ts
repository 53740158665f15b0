import type { Durability } from '../../../protocol/durability.ts';
import type { Kept, PausedSandbox } from '../../../protocol/node.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { asItWas, type AsItWas } from './as-it-was.ts';
import { recordSandboxEvent } from './events.ts';
import { columnsOf, sandboxOfRow } from './row.ts';
import type { SandboxRecord } from '../record.ts';

/** What a pause has kept. */
type Keeping = Pick<PausedSandbox, 'kept' | 'agentUnresponsive'>;
type Execution = { sandboxId: string; executionId: string };

/**
 * `running` → `pausing`, by `replicaId`, to keep `kept`. With `dueByUs`, only if its time is over by then: a timeout
 * that was extended meanwhile wins.
 */
export async function beginPause(
  db: Db,
  execution: Execution,
  kept: Kept,
  replicaId: string,
  dueByUs?: number,
): Promise<SandboxRecord | null> {
  let query = db
    .updateTable('sandboxes')
    .set({ state: 'pausing', kept, replica_id: replicaId })
    .where('sandbox_id', '=', execution.sandboxId)
    .where('execution_id', '=', execution.executionId)
    .where('state', '=', 'running');
  if (dueByUs !== undefined) query = query.where('end_at_us', '<=', dueByUs);
  const row = await query.returningAll().executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}

/**
 * `pausing` → `paused`; also a sandbox that the store has as running, being snapshotted or moved, where the node says
 * that it is paused. Null when somebody else has gone on with it since it was read.
 */
export async function finishPause(
  db: Db,
  sandbox: AsItWas,
  { kept, agentUnresponsive }: Keeping,
  pausedAtUs: number,
  durability: Durability = 'node',
): Promise<SandboxRecord | null> {
  return inTransaction(db, async db => {
    const row = await db
      .updateTable('sandboxes')
      .set({
        state: 'paused',
        kept,
        ...columnsOf({ agentUnresponsive: agentUnresponsive ?? false }),
        durability,
        end_at_us: pausedAtUs,
        replica_id: null,
        next_execution_id: null,
        next_node_id: null,
      })
      .where(asItWas(sandbox))
      .where('state', 'in', ['pausing', 'running', 'snapshotting', 'moving'])
      .returningAll()
      .executeTakeFirst();
    if (!row) return null;
    const paused = sandboxOfRow(row);
    await recordSandboxEvent(db, paused, { type: 'paused', atUs: pausedAtUs, data: { kept } });
    return paused;
  });
}

/** Records that what a paused sandbox has kept outlives its machine. Null when it is not paused as that (any more). */
export async function recordPauseStored(db: Db, execution: Execution): Promise<SandboxRecord | null> {
  const row = await db
    .updateTable('sandboxes')
    .set({ durability: 'cluster' })
    .where('sandbox_id', '=', execution.sandboxId)
    .where('execution_id', '=', execution.executionId)
    .where('state', '=', 'paused')
    .returningAll()
    .executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}

/** Records what its node has kept of a paused sandbox. */
export async function correctKept(db: Db, execution: Execution, { kept, agentUnresponsive }: Keeping): Promise<void> {
  await db
    .updateTable('sandboxes')
    .set({ kept, ...columnsOf({ agentUnresponsive: agentUnresponsive ?? false }) })
    .where('sandbox_id', '=', execution.sandboxId)
    .where('execution_id', '=', execution.executionId)
    .where('state', '=', 'paused')
    .execute();
}

/**
 * `pausing`, `snapshotting` or `moving` → `running`: it has run on where it was. Null when somebody else has gone on
 * with it since it was read.
 */
export async function returnToRunning(db: Db, sandbox: AsItWas): Promise<SandboxRecord | null> {
  const row = await db
    .updateTable('sandboxes')
    .set({
      state: 'running',
      kept: null,
      agent_unresponsive: 0,
      durability: null,
      replica_id: null,
      next_execution_id: null,
      next_node_id: null,
    })
    .where(asItWas(sandbox))
    .where('state', 'in', ['pausing', 'snapshotting', 'moving'])
    .returningAll()
    .executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}
