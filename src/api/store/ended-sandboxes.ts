import { sandboxStates } from '../../protocol/state.ts';
import type { Db } from './database.ts';
import { deleteSandbox } from './sandbox-state.ts';

/** Takes note that an operator ended these executions, in whatever state they were. */
export async function forgetEnded(db: Db, ended: { sandboxId: string; executionId: string }[], nowUs: number): Promise<void> {
  for (const target of ended) await deleteSandbox(db, target, sandboxStates, { reason: 'request', atUs: nowUs });
}
