import { sql } from 'kysely';
import type { Durability } from '../../../protocol/durability.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { recordSandboxEvent } from './events.ts';
import { recordHome } from './past.ts';
import { sandboxOfRow } from './row.ts';
import type { SandboxRecord } from '../record.ts';

type Execution = { sandboxId: string; executionId: string };

/**
 * `running` → `moving` to a machine, unless that has no room. Null when it does not run as that execution (any more).
 */
export async function beginMove(
  db: Db,
  execution: Execution,
  { nextNodeId, replicaId }: { nextNodeId: string; replicaId: string },
  hasRoom: (db: Db) => Promise<boolean>,
): Promise<SandboxRecord | 'node_full' | null> {
  return inTransaction(db, async db => {
    if (!(await hasRoom(db))) return 'node_full';
    const row = await db
      .updateTable('sandboxes')
      .set({ state: 'moving', next_node_id: nextNodeId, replica_id: replicaId })
      .where('sandbox_id', '=', execution.sandboxId)
      .where('execution_id', '=', execution.executionId)
      .where('state', '=', 'running')
      .returningAll()
      .executeTakeFirst();
    return row ? sandboxOfRow(row) : null;
  });
}

/**
 * Records which machine is about to be asked to run a sandbox that is being moved, and as which execution: before it is
 * asked, so that a process that takes over knows whom to ask. Null when `replicaId` is not moving the sandbox (any
 * more).
 */
export async function recordNextRun(
  db: Db,
  execution: Execution,
  next: { nextNodeId: string; nextExecutionId: string; durability: Durability | null; replicaId: string },
): Promise<SandboxRecord | null> {
  const row = await db
    .updateTable('sandboxes')
    .set({ next_node_id: next.nextNodeId, next_execution_id: next.nextExecutionId, durability: next.durability })
    .where('sandbox_id', '=', execution.sandboxId)
    .where('execution_id', '=', execution.executionId)
    .where('state', '=', 'moving')
    .where('replica_id', '=', next.replicaId)
    .returningAll()
    .executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}

/**
 * `moving` → `running` on the next machine, as the next execution, with the same end. Null when it is not being moved
 * as that (any more).
 */
export async function finishMove(
  db: Db,
  { sandboxId, executionId, nodeId }: Execution & { nodeId: string },
  nextExecutionId: string,
  nowUs: number,
): Promise<SandboxRecord | null> {
  return inTransaction(db, async db => {
    const row = await db
      .updateTable('sandboxes')
      .set({
        state: 'running',
        execution_id: nextExecutionId,
        node_id: sql<string>`next_node_id`,
        next_execution_id: null,
        next_node_id: null,
        replica_id: null,
        kept: null,
        durability: null,
      })
      .where('sandbox_id', '=', sandboxId)
      .where('execution_id', '=', executionId)
      .where('next_execution_id', '=', nextExecutionId)
      .where('state', '=', 'moving')
      .returningAll()
      .executeTakeFirst();
    if (!row) return null;
    const moved = sandboxOfRow(row);
    // A sandbox that went back is where it was.
    if (moved.nodeId !== nodeId) {
      await recordHome(db, { sandboxId, nodeId, leftAtUs: nowUs });
      await recordSandboxEvent(db, moved, { type: 'updated', atUs: nowUs, data: { moved: true } });
    }
    return moved;
  });
}
