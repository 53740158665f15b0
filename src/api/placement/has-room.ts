import type { NodeInfo } from '../../protocol/node.ts';
import { kindOf } from '../database/db.ts';
import type { Db } from '../database/db.ts';
import { prepared, together } from '../database/prepared.ts';
import { type Demands, machinesApart, noDemands } from './demands.ts';
import { allocationsIn, allocationsQuery, nodeAllocation, nothingPromised } from './node-status.ts';
import { isCluster, type Nodes } from './nodes.ts';
import { roomOf } from './room.ts';

/** A sandbox that is to be on a machine; `sandboxId` is its own, where it has a row already. */
type Wanted = { nodeId: string; cpuCount: number; memoryMiB: number; sandboxId?: string };

/**
 * Whether a machine takes a sandbox: it was not given up or taken out, has none that this one is to be apart from, and
 * what it has promised leaves room. It stays so until the transaction ends, so that two processes can't give the last
 * room away. One machine alone decides by itself.
 */
export async function hasRoom(
  { db, nodes }: { db: Db; nodes: Nodes },
  { nodeId, cpuCount, memoryMiB, sandboxId }: Wanted,
  demands: Demands = noDemands,
): Promise<boolean> {
  if (kindOf(db) === 'sqlite') return true;
  // Counted when the lock is had: each query sees what was committed before it began.
  const [[machine], rows] = await together(db, [
    machineRow.queryOf(db, { nodeId }, ['locked']),
    allocationsQuery(db, [nodeId]),
  ]);
  if (!machine) return !isCluster(nodes);
  if ((await machinesApart(db, demands, sandboxId)).has(nodeId)) return false;
  if (machine.given_up === 1) return false;
  return roomOf(infoOf(machine), allocationsIn(rows).get(nodeId) ?? nothingPromised).fits({ cpuCount, memoryMiB });
}

/** What a machine that had no room has promised and may promise, for people. */
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
