import type { DurablePauses } from '../../../blob/rules/pauses.ts';
import type { SandboxRecord } from '../../record.ts';
import { placeOfMove, requireMoves } from '../../rules/place/move.ts';
import { moveSandboxWorkflow } from './steps.ts';
import type { SandboxWork } from '../run.ts';
import type { SettleMoveDeps } from './settle.ts';

/** Dependencies of moving a sandbox. */
export type MoveDeps = SandboxWork & SettleMoveDeps & { durablePauses: DurablePauses | null };

/**
 * Moves a running sandbox to another machine that it fits. Errors: those of `placeOfMove`, `conflict` where it left the
 * state `running` by itself; after an error it runs on where it was.
 */
export async function moveSandbox(deps: MoveDeps, sandbox: SandboxRecord): Promise<SandboxRecord> {
  const nextNodeId = await placeOfMove(deps, sandbox);
  return moveSandboxWorkflow(deps, sandbox, { nextNodeId, durable: requireMoves(deps.durablePauses) });
}
