import { sandboxStates } from '../../../protocol/state.ts';
import type { Db } from '../../database/db.ts';
import { deleteSandbox } from './state.ts';

/** Records that an operator ended these executions, in any state. */
export async function forgetEnded(
  db: Db,
  ended: { sandboxId: string; executionId: string }[],
  nowUs: number,
): Promise<void> {
  for (const target of ended) await deleteSandbox(db, target, sandboxStates, { reason: 'request', atUs: nowUs });
}
