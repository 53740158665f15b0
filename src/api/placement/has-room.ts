import type { NodeInfo } from '../../protocol/node.ts';
import { kindOf } from '../database/db.ts';
import type { Db } from '../database/db.ts';
import { prepared, together } from '../database/prepared.ts';
import { type Demands, machinesApart, noDemands } from './demands.ts';
import { allocationsIn, allocationsQuery, nodeAllocation, nothingPromised } from './node-status.ts';
import { isCluster, type Nodes } from './nodes.ts';
import { roomOf } from './room.ts';

/** A sandbox that is to be placed on a machine; `sandboxId` is its own, if it has a row already. */
type Wanted = { nodeId: string; cpuCount: number; memoryMiB: number; sandboxId?: string };

/**
 * Whether a machine can take a sandbox: it was not given up or taken out, has none that this one must stay away from,
 * and its promises leave room. The answer holds until the transaction ends, so that two processes can't both give away
 * the last room. A single machine decides by itself.
 */
export async function hasRoom(
  { db, nodes }: { db: Db; nodes: Nodes },
  { nodeId, cpuCount, memoryMiB, sandboxId }: Wanted,
  demands: Demands = noDemands,
): Promise<boolean> {
  if (kindOf(db) === 'sqlite') return true;
  // Counted once the lock is held: each query sees what was committed before it began.
  const [[machine], rows] = await together(db, [
    machineRow.queryOf(db, { nodeId }, ['locked']),
    allocationsQuery(db, [nodeId]),
  ]);
  if (!machine) return !isCluster(nodes);
  if ((await machinesApart(db, demands, sandboxId)).has(nodeId)) return false;
  if (machine.given_up === 1) return false;
  return roomOf(infoOf(machine), allocationsIn(rows).get(nodeId) ?? nothingPromised).fits({ cpuCount, memoryMiB });
}

/** What a machine without room has promised and may promise, in words. */
export async function roomText(db: Db, nodeId: string): Promise<string> {
  const [machine] = await machineRow(db, { nodeId });
  if (!machine || machine.given_up === 1) return `node ${nodeId} is out of reach`;
  return `node ${nodeId}: ${roomOf(infoOf(machine), await nodeAllocation(db, nodeId)).text}`;
}

type MachineRow = { info_json: string | null; given_up: number };

const machineRow = prepared<{ nodeId: string }, MachineRow, 'locked'>((db, parameter, words) => {
  const query = db
    .selectFrom('cluster_nodes')
    .select(['info_json', 'given_up'])
    .where('node_id', '=', parameter('nodeId'));
  return words.includes('locked') ? query.forUpdate() : query;
});

const infoOf = ({ info_json: json }: Pick<MachineRow, 'info_json'>) =>
  json === null ? null : (JSON.parse(json) as NodeInfo);
