import type { NodeInfo } from '../../protocol/node.ts';
import { kindOf } from '../database/db.ts';
import type { Db } from '../database/db.ts';
import { type Demands, machinesApart, noDemands } from './demands.ts';
import { nodeAllocation } from './node-status.ts';
import { roomOf } from './room.ts';

/** A sandbox that is to be on a machine; `sandboxId` is its own, where it has a row already. */
type Wanted = { nodeId: string; cpuCount: number; memoryMiB: number; sandboxId?: string };

/**
 * Whether a machine takes a sandbox: it was not given up, has none that this one is to be apart from, and what it
 * has promised leaves room. It stays so until the transaction ends, so that two processes can't give the last room
 * away. One machine alone decides by itself.
 */
export async function hasRoom(
  db: Db,
  { nodeId, cpuCount, memoryMiB, sandboxId }: Wanted,
  demands: Demands = noDemands,
): Promise<boolean> {
  if (kindOf(db) === 'sqlite') return true;
  const machine = await db
    .selectFrom('cluster_nodes')
    .select(['info_json', 'given_up'])
    .where('node_id', '=', nodeId)
    .forUpdate()
    .executeTakeFirst();
  if (!machine) return true;
  const info = machine.info_json === null ? null : (JSON.parse(machine.info_json) as NodeInfo);
  if ((await machinesApart(db, demands, sandboxId)).has(nodeId)) return false;
  return machine.given_up === 0 && roomOf(info, await nodeAllocation(db, nodeId)).fits({ cpuCount, memoryMiB });
}
