import { AtollError } from '../../../base/error.ts';
import type { NodeStatus } from '../../../protocol/api/node.ts';
import type { NodeInfo } from '../../../protocol/node.ts';
import type { NodeUsage } from '../../../protocol/node-usage.ts';
import { findNodeStatus, isEmptying, isForgotten, nodeAllocation, setNodeStatus } from '../../placement/node-status.ts';
import type { NodeStatusRecord } from '../../placement/node-status.ts';
import type { WantedNodeStatus } from '../../database/schema.ts';
import type { CreateCounts } from '../../placement/create-counts.ts';
import type { Db } from '../../database/db.ts';
import type { AwayNode, Nodes } from '../../placement/nodes.ts';
import type { OrphanDeps } from './orphans.ts';

/** Dependencies of a report about a machine. */
export type NodeReportDeps = { createCounts: CreateCounts; db: Db; nodes: Nodes; startedAtUs: number };

/** The name of an installation's only cluster. */
export const clusterId = 'local';

/** What is known of a machine. */
export type NodeReport = {
  nodeId: string;
  status: NodeStatus;
  statusChangedAtUs: number;
  /** Null while the machine does not answer. */
  info: NodeInfo | null;
  usage: NodeUsage | null;
  /** Release of its program; absent: unknown, or the same as this process's. */
  release?: string;
  allocation: Awaited<ReturnType<typeof nodeAllocation>>;
  creates: { successes: number; fails: number };
};

/** All machines, including those out of reach; none for another cluster than this one. */
export async function listNodes(deps: NodeReportDeps, wantedCluster: string | undefined): Promise<NodeReport[]> {
  if (wantedCluster !== undefined && wantedCluster !== clusterId) return [];
  const { nodes } = deps;
  const reports = await Promise.all([
    ...nodes.list().map(node => report(deps, node)),
    ...(nodes.away?.() ?? []).map(node => reportAway(deps, node)),
  ]);
  return reports.toSorted((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
}

/** Throws `not_found`. */
export async function readNode(deps: NodeReportDeps, nodeId: string): Promise<NodeReport> {
  const { nodes } = deps;
  const there = nodes.list().find(node => node.nodeId === nodeId);
  if (there) return report(deps, there);
  const away = nodes.away?.().find(node => node.nodeId === nodeId);
  if (away) return reportAway(deps, away);
  throw unknownNode(nodeId);
}

/**
 * Takes a machine out of placement (`draining`, `standby`) or back in (`ready`). Its running sandboxes are not touched.
 * Throws `not_found`, and `conflict` for a status that only the machine itself can have.
 */
export async function changeNodeStatus(
  { clock, db, nodes }: OrphanDeps,
  nodeId: string,
  status: NodeStatus,
): Promise<void> {
  await requireKnown({ db, nodes }, nodeId);
  if (!isWanted(status))
    throw new AtollError(
      'conflict',
      `status: a machine is "${status}" by itself; what can be set is ready, draining or standby`,
    );
  await setNodeStatus(db, { nodeId, status, changedAtUs: clock() });
}

function isWanted(status: NodeStatus): status is NodeStatus & WantedNodeStatus {
  return status === 'ready' || status === 'draining' || status === 'standby';
}

/**
 * Throws `not_found` for a machine that does not exist, in reach or not: also for one that another process has just
 * taken out.
 */
export async function requireKnown(deps: { db: Db; nodes: Nodes }, nodeId: string): Promise<void> {
  const { nodes } = deps;
  const isKnown = [...nodes.list(), ...(nodes.away?.() ?? [])].some(node => node.nodeId === nodeId);
  if (!isKnown || (await isForgotten(deps, nodeId))) throw unknownNode(nodeId);
}

function unknownNode(nodeId: string): AtollError {
  return new AtollError('not_found', `Node "${nodeId}" was not found`);
}

async function report(
  { createCounts, db, startedAtUs }: NodeReportDeps,
  { nodeId, protocol: node, release, sinceUs = startedAtUs }: ReturnType<Nodes['list']>[number],
): Promise<NodeReport> {
  const wanted: NodeStatusRecord | null = await findNodeStatus(db, nodeId);
  const [info, usage] = await Promise.all([node.info().catch(() => null), node.usage().catch(() => null)]);
  return {
    nodeId,
    status: info === null ? 'unhealthy' : shownStatus(wanted),
    // A machine that is taken out stays so while it is away; a ready one is ready since it came back.
    statusChangedAtUs:
      wanted && wanted.status !== 'ready' ? wanted.changedAtUs : Math.max(wanted?.changedAtUs ?? 0, sinceUs),
    info,
    usage,
    ...(release !== undefined && { release }),
    allocation: await nodeAllocation(db, nodeId),
    creates: createCounts.of(nodeId),
  };
}

/** The drain itself says whether its sandboxes are paused or moved. */
function shownStatus(wanted: NodeStatusRecord | null): NodeStatus {
  const status = wanted?.status ?? 'ready';
  return isEmptying(status) ? 'draining' : status;
}

/** The report of a machine as of its last presence. */
async function reportAway(
  { createCounts, db }: NodeReportDeps,
  { nodeId, isConnecting, sinceUs, info, release }: AwayNode,
): Promise<NodeReport> {
  return {
    nodeId,
    status: isConnecting ? 'connecting' : 'unhealthy',
    statusChangedAtUs: sinceUs,
    info,
    usage: null,
    ...(release !== undefined && { release }),
    allocation: await nodeAllocation(db, nodeId),
    creates: createCounts.of(nodeId),
  };
}
