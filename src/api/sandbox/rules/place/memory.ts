import { AtollError } from '../../../../base/error.ts';
import type { DurableSnapshots } from '../../../blob/rules/snapshots.ts';
import type { BuildRecord } from '../../../build/record.ts';
import type { Db } from '../../../database/db.ts';
import { placeElsewhere } from '../../../placement/elsewhere.ts';
import { noCompatibleNode, type Nodes } from '../../../placement/nodes.ts';
import { type Placed, placeSandbox, type Wanted } from '../../../placement/place.ts';

/** What it takes to choose the machine of a sandbox that starts with memory. */
type PlaceDeps = { db: Db; nodes: Nodes; durableSnapshots: DurableSnapshots | null };

/**
 * The machine of a new sandbox. One that starts with the memory of a snapshot goes to the machine that has it. Where
 * that is away, taken out or full, and the memory is in the store, it goes to another one that it fits. Errors:
 * `unavailable`, and `precondition` with the reasons where it fits no machine in reach.
 */
export async function placeWith(
  deps: PlaceDeps,
  { config }: Pick<BuildRecord, 'config'>,
  wanted: Wanted,
): Promise<Placed> {
  const { db, nodes, durableSnapshots } = deps;
  const { memorySnapshotId, volumeMounts = [] } = config;
  try {
    return await placeSandbox(nodes, db, wanted);
  } catch (error) {
    const isFull = error instanceof AtollError && (error.code === 'unavailable' || error.detail === noCompatibleNode);
    // Volumes stay where they are.
    const isFixed = memorySnapshotId === undefined || wanted.home === undefined || volumeMounts.length > 0;
    const facts = !isFull || isFixed ? null : await durableSnapshots?.facts(memorySnapshotId);
    if (!facts) throw error;
    return await elsewhere(deps, facts, wanted);
  }
}

type Facts = NonNullable<Awaited<ReturnType<DurableSnapshots['facts']>>>;

async function elsewhere({ db, nodes }: PlaceDeps, facts: Facts, wanted: Wanted): Promise<Placed> {
  const { home = '', cpuCount, memoryMiB, full, demands } = wanted;
  try {
    const nodeId = await placeElsewhere(
      { db, nodes },
      { home, facts, memory: true, cpuCount, memoryMiB, full, demands },
    );
    return { nodeId, protocol: nodes.get(nodeId) };
  } catch (error) {
    if (!(error instanceof AtollError) || error.code !== 'precondition') throw error;
    throw new AtollError(
      'precondition',
      `The machine with the memory of the snapshot takes no sandbox now, and ${error.message}`,
      { detail: noCompatibleNode, cause: error },
    );
  }
}
