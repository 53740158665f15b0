import { messageOf } from '../../../base/error.ts';
import type { Clock } from '../../../base/clock.ts';
import { type DrainMode, drainModes } from '../../../protocol/api/drain.ts';
import { occupyingStates } from '../../../protocol/state.ts';
import type { WantedNodeStatus } from '../../database/schema.ts';
import { findNodeStatus, setNodeStatus } from '../../placement/node-status.ts';
import type { SandboxFacts } from '../../sandbox/record.ts';
import { type MovePlaceDeps, placeOfMove, requireMoves } from '../../sandbox/rules/place/move.ts';
import { pausedAloneOn } from '../../sandbox/store/counts.ts';
import { sandboxesOn } from '../../sandbox/store/read.ts';
import type { VolumeRecord } from '../../volume/record.ts';
import { usedVolumes } from '../../volume/store/moves.ts';
import { volumesAloneOn } from '../../volume/store/volumes.ts';
import { requireKnown } from './nodes.ts';

/** Dependencies of draining a machine. */
export type DrainDeps = MovePlaceDeps & { clock: Clock };

/** A sandbox that keeps a machine from being empty. `reason`: why it can't leave in this way; null where it can. */
type Remaining = { sandbox: SandboxFacts; reason: string | null };

/** How far a machine is from being empty. */
export type Drain = {
  nodeId: string;
  mode: 'none' | DrainMode;
  remaining: Remaining[];
  volumes: RemainingVolume[];
  /** What is on its disk alone, and is lost with it, even when nothing runs there any more. */
  kept: { sandboxes: number; volumes: number };
};

/** A volume that keeps a machine from being empty, if that is emptied by moves. */
type RemainingVolume = { volume: VolumeRecord; reason: string | null };

/**
 * States of sandboxes that occupy a machine. A kill, too, needs the machine to the end, and is answered 500 without it.
 */
const heldIn = [...occupyingStates, 'killing'] as const;

const statusOf: Record<DrainMode, WantedNodeStatus> = { wait: 'draining', pause: 'pausing', move: 'moving' };

/**
 * How far a machine is from being empty; the sandboxes that can't leave come first. `wanted`: as if it were drained in
 * this way; absent: in its present way, or by pauses. Throws `not_found`.
 */
export async function readDrain(deps: DrainDeps, nodeId: string, wanted?: DrainMode): Promise<Drain> {
  const { db } = deps;
  await requireKnown(deps, nodeId);
  const status = (await findNodeStatus(db, nodeId))?.status;
  // When Kubernetes evicts, all that can be moved are moved; the reasons against it are shown.
  const mode = status === 'evicting' ? 'move' : (drainModes.find(mode => statusOf[mode] === status) ?? 'none');
  const asked = wanted ?? (mode === 'none' ? 'pause' : mode);
  const there = (await sandboxesOn(db, nodeId, heldIn)).filter(
    sandbox => sandbox.nodeId === nodeId || sandbox.state === 'killing',
  );
  const remaining = await Promise.all(
    there.map(async sandbox => ({ sandbox, reason: await reasonAgainst(deps, sandbox, asked) })),
  );
  const volumes = asked === 'move' ? await volumesOf(deps, nodeId, there) : [];
  // Counted last: a machine that nothing holds up any more must not be said to keep what left it a moment ago.
  const [sandboxes, volumesAlone] = await Promise.all([pausedAloneOn(db, nodeId), volumesAloneOn(db, nodeId)]);
  return {
    nodeId,
    mode,
    kept: { sandboxes, volumes: volumesAlone },
    volumes: volumes.toSorted((a, b) => Number(a.reason === null) - Number(b.reason === null)),
    remaining: remaining.toSorted((a, b) => Number(a.reason === null) - Number(b.reason === null)),
  };
}

/** A volume that only paused sandboxes have stays with them, and does not hold up the machine. */
async function volumesOf(
  { db, nodes }: DrainDeps,
  nodeId: string,
  there: readonly SandboxFacts[],
): Promise<RemainingVolume[]> {
  const isAlone = nodes.list().every(node => node.nodeId === nodeId);
  const inUse = new Set(there.flatMap(({ volumeMounts }) => volumeMounts.map(({ volumeId }) => volumeId)));
  return (await usedVolumes(db, nodeId)).flatMap(({ volume, users }) => {
    if (users.length > 0 && !inUse.has(volume.volumeId)) return [];
    if (users.length > 0) return { volume, reason: `sandboxes have it: ${users.join(', ')}` };
    return { volume, reason: isAlone ? 'no other machine is in reach' : null };
  });
}

/**
 * Begins to empty a machine: it takes no new sandboxes, and its sandboxes end by themselves, or are paused with their
 * memory or moved. Throws `not_found`; `precondition` for moves where there is no way to carry them.
 */
export async function beginDrain(deps: DrainDeps, nodeId: string, mode: DrainMode): Promise<Drain> {
  await requireKnown(deps, nodeId);
  // What Kubernetes has begun, only Kubernetes ends; a request for the same waits for it.
  if (mode === 'move' && (await findNodeStatus(deps.db, nodeId))?.status === 'evicting') return readDrain(deps, nodeId);
  if (mode === 'move') requireMoves(deps.durablePauses);
  await setNodeStatus(deps.db, { nodeId, status: statusOf[mode], changedAtUs: deps.clock() });
  return readDrain(deps, nodeId);
}

/** Why a sandbox can't leave in a way; null where it can, or will be able to in a moment. */
export async function reasonAgainst(
  deps: MovePlaceDeps,
  sandbox: SandboxFacts,
  mode: DrainMode,
): Promise<string | null> {
  const { nodeId, sandboxId, executionId, state } = sandbox;
  if (mode === 'wait') return null;
  try {
    const node = deps.nodes.get(nodeId);
    if (state !== 'running') return null;
    if (mode === 'move') return await placeOfMove(deps, sandbox).then(() => null);
    const memory = await node.memoryAbility({ sandboxId, executionId });
    return memory.kept ? null : `its memory can't be kept: ${memory.reason}`;
  } catch (error) {
    return messageOf(error);
  }
}
