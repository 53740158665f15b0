import { AtollError, messageOf } from '../../../base/error.ts';
import type { Clock } from '../../../base/clock.ts';
import { occupyingStates } from '../../../protocol/state.ts';
import type { Db } from '../../database/db.ts';
import { findNodeStatus, setNodeStatus } from '../../placement/node-status.ts';
import type { Nodes } from '../../placement/nodes.ts';
import type { SandboxRecord } from '../../sandbox/record.ts';
import { sandboxesIn } from '../../sandbox/store/read.ts';
import { requireKnown } from './nodes.ts';

/** What draining a machine takes. */
export type DrainDeps = { clock: Clock; db: Db; nodes: Nodes };

/** A sandbox that keeps a machine from being empty. `reason`: why it can't be paused; null where it can be. */
type Remaining = { sandbox: SandboxRecord; reason: string | null };

/** How far a machine is from being empty. */
export type Drain = { nodeId: string; mode: 'none' | 'wait' | 'pause'; remaining: Remaining[] };

/** How far a machine is from being empty; those that can't be paused come first. Throws `not_found`. */
export async function readDrain({ db, nodes }: DrainDeps, nodeId: string): Promise<Drain> {
  requireKnown(nodes, nodeId);
  const wanted = (await findNodeStatus(db, nodeId))?.status;
  const there = (await sandboxesIn(db, occupyingStates)).filter(sandbox => sandbox.nodeId === nodeId);
  const remaining = await Promise.all(
    there.map(async sandbox => ({ sandbox, reason: await reasonAgainstPause(nodes, sandbox) })),
  );
  return {
    nodeId,
    mode: wanted === 'pausing' ? 'pause' : wanted === 'draining' ? 'wait' : 'none',
    remaining: remaining.toSorted((a, b) => Number(a.reason === null) - Number(b.reason === null)),
  };
}

/**
 * Begins to empty a machine: it takes no new sandboxes, and those that it has end by themselves or are paused with
 * their memory. Throws `not_found`; `unimplemented` for a way that is not there yet.
 */
export async function beginDrain(deps: DrainDeps, nodeId: string, mode: 'wait' | 'pause' | 'move'): Promise<Drain> {
  if (mode === 'move')
    throw new AtollError(
      'unimplemented',
      "mode: running sandboxes can't be moved to another machine yet, because their memory and disks are on this " +
        'one alone; pause keeps them here, wait lets them end',
    );
  requireKnown(deps.nodes, nodeId);
  await setNodeStatus(deps.db, {
    nodeId,
    status: mode === 'pause' ? 'pausing' : 'draining',
    changedAtUs: deps.clock(),
  });
  return readDrain(deps, nodeId);
}

/** Why a sandbox can't be paused with its memory; null where it can be, or will be able to in a moment. */
export async function reasonAgainstPause(
  nodes: Nodes,
  { nodeId, sandboxId, executionId, state }: SandboxRecord,
): Promise<string | null> {
  try {
    const node = nodes.get(nodeId);
    if (state !== 'running') return null;
    const memory = await node.memoryAbility({ sandboxId, executionId });
    return memory.kept ? null : `its memory can't be kept: ${memory.reason}`;
  } catch (error) {
    return messageOf(error);
  }
}
