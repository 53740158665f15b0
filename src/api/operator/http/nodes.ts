import { Type } from '@sinclair/typebox';
import { platformVersion } from '../../../base/version.ts';
import { Node, NodeDetail, NodeStatusChange } from '../../../protocol/api/node.ts';
import { changeNodeStatus, clusterId, listNodes, readNode } from '../rules/nodes.ts';
import type { PoolCounts } from '../../../protocol/node-usage.ts';
import type { NodeReport } from '../rules/nodes.ts';
import { formatTime } from '../../../base/time.ts';
import { route } from '../../http/route.ts';
import type { Clock } from '../../../base/clock.ts';
import type { NodeReportDeps } from '../rules/nodes.ts';

const nodeParams = Type.Object({ nodeID: Type.String() });

/** `GET /nodes` */
export const listNodesRoute = route({
  operationId: 'listNodes',
  method: 'GET',
  path: '/nodes',
  summary: 'List nodes',
  auth: 'admin',
  query: Type.Object({ clusterID: Type.Optional(Type.String()) }),
  responses: { 200: { description: 'The machines', schema: Type.Array(Node) } },
  async handle(deps: NodeReportDeps & { commit: string }, { query }) {
    const nodes = await listNodes(deps, query.clusterID);
    const view = (node: NodeReport) => ({
      ...nodeView(deps.commit, node),
      sandboxStartingCount: node.allocation.starting,
    });
    return { status: 200, body: nodes.map(view) };
  },
});

/** `GET /nodes/{nodeID}` */
export const readNodeRoute = route({
  operationId: 'getNode',
  method: 'GET',
  path: '/nodes/{nodeID}',
  summary: 'Get a node',
  auth: 'admin',
  params: nodeParams,
  responses: { 200: { description: 'The machine', schema: NodeDetail } },
  errors: [404],
  async handle(deps: NodeReportDeps & { commit: string }, { params }) {
    return { status: 200, body: nodeView(deps.commit, await readNode(deps, params.nodeID)) };
  },
});

/** `POST /nodes/{nodeID}` */
export const updateNodeRoute = route({
  operationId: 'updateNode',
  method: 'POST',
  path: '/nodes/{nodeID}',
  summary: 'Set the status of a node: take it out of placement, or back in',
  auth: 'admin',
  params: nodeParams,
  body: NodeStatusChange,
  responses: { 204: { description: 'Changed' } },
  errors: [404, 409],
  async handle(deps: NodeReportDeps & { clock: Clock }, { params, body, audit }) {
    const { status } = await readNode(deps, params.nodeID);
    audit({ target: `node:${params.nodeID}`, before: { status }, after: { status: body.status } });
    await changeNodeStatus(deps, params.nodeID, body.status);
    return { status: 204 };
  },
});

const bytesPerMiB = 1024 * 1024;

/** Values that a machine does not report are 0 or empty. */
function nodeView(
  commit: string,
  { nodeId, status, statusChangedAtUs, info, usage, release, allocation, creates }: NodeReport,
): NodeDetail {
  const { hugePages } = usage ?? {};
  return {
    id: nodeId,
    serviceInstanceID: nodeId,
    clusterID: clusterId,
    status,
    statusChangedAt: formatTime(statusChangedAtUs),
    sandboxCount: allocation.sandboxes,
    createSuccesses: creates.successes,
    createFails: creates.fails,
    version: release ?? platformVersion,
    commit: commit,
    machineInfo: info?.machine ?? { cpuFamily: '', cpuModel: '', cpuModelName: '', cpuArchitecture: process.arch },
    metrics: {
      allocatedCPU: allocation.cpuCount,
      cpuCount: info?.cpuCount ?? 0,
      cpuPercent: Math.round(usage?.cpuPercent ?? 0),
      allocatedMemoryBytes: allocation.memoryMiB * bytesPerMiB,
      memoryUsedBytes: usage?.memoryUsedBytes ?? 0,
      memoryTotalBytes: info?.memoryBytes ?? 0,
      hugePagesTotal: hugePages?.total ?? 0,
      hugePagesUsed: hugePages?.used ?? 0,
      hugePagesReserved: hugePages?.reserved ?? 0,
      hugePageSizeBytes: hugePages?.pageSizeBytes ?? 0,
      disks: usage?.disks ?? [],
    },
    ...(info && { keepsMemory: info.memory }),
    ...(usage?.pool && { pool: poolView(usage.pool) }),
    ...(info?.labels && { labels: info.labels }),
  };
}

const poolView = ({ size, ready, hits, misses }: PoolCounts) => ({ size, ready, hits, misses });
