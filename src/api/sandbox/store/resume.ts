import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { countOccupied } from './create.ts';
import { recordSandboxEvent } from './events.ts';
import { recordHome } from './past.ts';
import { sandboxOfRow } from './row.ts';
import type { SandboxRecord } from '../record.ts';

type Execution = { sandboxId: string; executionId: string };
/** The process that resumes a sandbox, the execution that begins, and where. */
type Claim = { nextExecutionId: string; replicaId: string; nodeId?: string; nowUs: number };

/**
 * `paused` → `resuming` on a machine, unless the team already occupies `concurrentMax` places or the machine has no
 * room. Null when it is not paused as that execution (any more).
 */
export async function beginResume(
  db: Db,
  sandbox: Execution & { teamId: string; nodeId?: string },
  { nextExecutionId, replicaId, nodeId, nowUs }: Claim,
  concurrentMax: number,
  hasRoom?: (db: Db) => Promise<boolean>,
): Promise<SandboxRecord | 'full' | 'node_full' | null> {
  return inTransaction(db, async db => {
    if ((await countOccupied(db, sandbox.teamId)) >= concurrentMax) return 'full';
    if (hasRoom && !(await hasRoom(db))) return 'node_full';
    const row = await db
      .updateTable('sandboxes')
      .set({
        state: 'resuming',
        next_execution_id: nextExecutionId,
        replica_id: replicaId,
        ...(nodeId !== undefined && { node_id: nodeId }),
      })
      .where('sandbox_id', '=', sandbox.sandboxId)
      .where('execution_id', '=', sandbox.executionId)
      .where('state', '=', 'paused')
      .returningAll()
      .executeTakeFirst();
    if (row && nodeId !== undefined && sandbox.nodeId !== undefined && sandbox.nodeId !== nodeId)
      await recordHome(db, { sandboxId: row.sandbox_id, nodeId: sandbox.nodeId, leftAtUs: nowUs });
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
        replica_id: null,
        kept: null,
        agent_unresponsive: 0,
        durability: null,
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
export async function cancelResume(
  db: Db,
  sandbox: Execution & { nextExecutionId: string },
): Promise<SandboxRecord | null> {
  const row = await db
    .updateTable('sandboxes')
    .set({ state: 'paused', next_execution_id: null, replica_id: null })
    .where('sandbox_id', '=', sandbox.sandboxId)
    .where('execution_id', '=', sandbox.executionId)
    .where('next_execution_id', '=', sandbox.nextExecutionId)
    .where('state', '=', 'resuming')
    .returningAll()
    .executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}
