import { AtollError } from '../../../../base/error.ts';
import type { DurablePauses } from '../../../blob/rules/pauses.ts';
import type { Db } from '../../../database/db.ts';
import { placeElsewhere } from '../../../placement/elsewhere.ts';
import type { Nodes } from '../../../placement/nodes.ts';
import type { SandboxFacts } from '../../record.ts';
import { findExecution } from '../../store/read.ts';
import { demandsOf } from '../demands.ts';

/** Dependencies of choosing the machine of a move. */
export type MovePlaceDeps = { db: Db; nodes: Nodes; durablePauses: DurablePauses | null };

/** Refuses moves where there is no way to carry sandboxes. Errors: `precondition`. */
export function requireMoves(durablePauses: DurablePauses | null): DurablePauses {
  if (durablePauses) return durablePauses;
  throw new AtollError('precondition', 'moving a sandbox needs a cluster with a store (ATOLL_STORE): docs/cluster.md');
}

/**
 * The machine to which a running sandbox can be moved. Errors, with the reason: `precondition` where it can't be moved,
 * `unavailable` where it can't be moved now.
 */
export async function placeOfMove(deps: MovePlaceDeps, sandbox: SandboxFacts): Promise<string> {
  const pauses = requireMoves(deps.durablePauses);
  pauses.requireUsable();
  const { nodeId, sandboxId, executionId, cpuCount, memoryMiB } = sandbox;
  if (sandbox.volumeMounts.length > 0)
    throw new AtollError('precondition', 'it has volumes, which stay on their machine');
  const ability = await deps.nodes.get(nodeId).memoryAbility({ sandboxId, executionId });
  if (!ability.kept) throw new AtollError('precondition', `its memory can't be kept: ${ability.reason}`);
  const facts = await pauses.describe(sandbox);
  const metadata = (await findExecution(deps.db, sandbox))?.metadata ?? null;
  return placeElsewhere(deps, {
    home: nodeId,
    facts,
    memory: true,
    cpuCount,
    memoryMiB,
    sandboxId,
    demands: demandsOf({ ...sandbox, metadata }),
  });
}
