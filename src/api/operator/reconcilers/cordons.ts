import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import { hostOf } from '../../../protocol/cluster-address.ts';
import type { CordonedAddresses } from '../../../protocol/cluster.ts';
import { listClusterNodes } from '../../cluster/store/nodes.ts';
import type { Db } from '../../database/db.ts';
import { changeNodeStatusFrom, findNodeStatus } from '../../placement/node-status.ts';

/** How often this runs, milliseconds. */
export const cordonsIntervalMs = 5_000;

/** What it takes to follow Kubernetes. */
type CordonDeps = { db: Db; clock: Clock; log: Log; cordoned: CordonedAddresses };

/**
 * Empties the machines that Kubernetes has cordoned (`kubectl drain` does that first), and takes them back when it no
 * longer says so. Leaves alone what an operator wants of a machine in Atoll.
 */
export async function reconcileCordons({ db, clock, log, cordoned }: CordonDeps): Promise<void> {
  const addresses = await cordoned();
  for (const { nodeId, address } of await listClusterNodes(db)) {
    const status = (await findNodeStatus(db, nodeId))?.status ?? 'ready';
    const isCordoned = addresses.has(hostOf(address));
    if (isCordoned ? status !== 'ready' : status !== 'evicting') continue;
    const wanted = isCordoned ? 'evicting' : 'ready';
    if (await changeNodeStatusFrom(db, { nodeId, status: wanted, changedAtUs: clock() }, status))
      log.info(isCordoned ? 'Kubernetes drains a machine' : 'Kubernetes has a machine take work again', { nodeId });
  }
}
