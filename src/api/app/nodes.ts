import { AtollError } from '../../base/error.ts';
import type { NodeStatus } from '../../protocol/api/node.ts';
import type { NodeInfo, NodeUsage } from '../../protocol/node.ts';
import { findNodeStatus, nodeAllocation, setNodeStatus } from '../store/nodes.ts';
import type { NodeStatusRecord } from '../store/nodes.ts';
import type { WantedNodeStatus } from '../store/schema.ts';
import type { App } from './context.ts';

/** The name of the one cluster of an installation. */
export const clusterId = 'local';

export type NodeReport = {
  nodeId: string;
  status: NodeStatus;
  statusChangedAtUs: number;
  /** Null while the machine does not answer. */
  info: NodeInfo | null;
  usage: NodeUsage | null;
  allocation: Awaited<ReturnType<typeof nodeAllocation>>;
  creates: { successes: number; fails: number };
};

/** All machines; none in another cluster than this one. */
export async function listNodes(app: App, wantedCluster: string | undefined): Promise<NodeReport[]> {
  if (wantedCluster !== undefined && wantedCluster !== clusterId) return [];
  return Promise.all(app.nodes.list().map(({ nodeId }) => report(app, nodeId)));
}

/** Throws `not_found`. */
export async function readNode(app: App, nodeId: string): Promise<NodeReport> {
  checkKnown(app, nodeId);
  return report(app, nodeId);
}

/**
 * Takes a machine out of placement (`draining`, `standby`) or back in (`ready`). Its running sandboxes are not touched.
 * Throws `not_found`, and `conflict` for a status that a machine has by itself.
 */
export async function changeNodeStatus(app: App, nodeId: string, status: NodeStatus): Promise<void> {
  checkKnown(app, nodeId);
  if (!isWanted(status)) throw new AtollError('conflict', `status: a machine is "${status}" by itself; what can be set is ready, draining or standby`);
  await setNodeStatus(app.store.db, { nodeId, status, changedAtUs: app.clock() });
}

function isWanted(status: NodeStatus): status is WantedNodeStatus {
  return status === 'ready' || status === 'draining' || status === 'standby';
}

function checkKnown(app: App, nodeId: string): void {
  if (app.nodes.list().some(node => node.nodeId === nodeId)) return;
  throw new AtollError('not_found', `Node "${nodeId}" was not found`);
}

async function report(app: App, nodeId: string): Promise<NodeReport> {
  const wanted: NodeStatusRecord | null = await findNodeStatus(app.store.db, nodeId);
  const node = app.nodes.get(nodeId);
  const [info, usage] = await Promise.all([node.info().catch(() => null), node.usage().catch(() => null)]);
  return {
    nodeId,
    status: info === null ? 'unhealthy' : (wanted?.status ?? 'ready'),
    statusChangedAtUs: wanted?.changedAtUs ?? app.startedAtUs,
    info,
    usage,
    allocation: await nodeAllocation(app.store.db, nodeId),
    creates: app.createCounts.of(nodeId),
  };
}
