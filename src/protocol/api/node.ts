import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime, int32, int64, mapOf, oneOf } from './primitives.ts';

/** `ready`, `draining` and `standby` are what an operator wants of a machine; the others are observed. */
const nodeStatuses = ['ready', 'draining', 'connecting', 'unhealthy', 'standby'] as const;
export type NodeStatus = (typeof nodeStatuses)[number];

const bytes = (description?: string) => int64({ minimum: 0, ...(description !== undefined && { description }) });

/** Use of one file system of a node. */
const DiskMetrics = Type.Object(
  {
    mountPoint: Type.String(),
    device: Type.String(),
    filesystemType: Type.String(),
    usedBytes: bytes(),
    totalBytes: bytes(),
  },
  { $id: 'DiskMetrics' },
);

/** Use of a node's CPUs, memory and disks. */
const NodeMetrics = Type.Object(
  {
    allocatedCPU: int32({ minimum: 0, description: 'CPUs promised to sandboxes' }),
    cpuCount: int32({ minimum: 0 }),
    cpuPercent: int32({ minimum: 0, maximum: 100 }),
    allocatedMemoryBytes: bytes('Memory promised to sandboxes'),
    memoryUsedBytes: bytes(),
    memoryTotalBytes: bytes(),
    hugePagesTotal: int64({ minimum: 0 }),
    hugePagesUsed: int64({ minimum: 0 }),
    hugePagesReserved: int64({ minimum: 0 }),
    hugePageSizeBytes: bytes(),
    disks: Type.Array(DiskMetrics),
  },
  { $id: 'NodeMetrics' },
);

const detail = {
  id: Type.String(),
  serviceInstanceID: Type.String(),
  clusterID: Type.String(),
  status: oneOf(nodeStatuses),
  statusChangedAt: dateTime(),
  sandboxCount: int32({ minimum: 0 }),
  createSuccesses: int64({ minimum: 0, description: 'Creates and forks, since the platform started' }),
  createFails: int64({
    minimum: 0,
    description: "Creates and forks that failed through no fault of the caller's, since the platform started",
  }),
  version: Type.String(),
  commit: Type.String(),
  machineInfo: Type.Object({
    cpuFamily: Type.String(),
    cpuModel: Type.String(),
    cpuModelName: Type.String(),
    cpuArchitecture: Type.String(),
  }),
  metrics: NodeMetrics,
  keepsMemory: Type.Optional(
    Type.Object(
      { kept: Type.Boolean(), reason: Type.Optional(Type.String({ description: 'Why it is not' })) },
      { description: 'Whether pauses keep memory, by its default driver. Absent while it does not answer. Atoll only' },
    ),
  ),
  pool: Type.Optional(
    Type.Object(
      {
        size: int32({ minimum: 0, description: 'Started ones that it keeps' }),
        ready: int32({ minimum: 0, description: 'Those that wait now' }),
        hits: int64({ minimum: 0, description: 'Creates that found one, since the node started' }),
        misses: int64({ minimum: 0, description: 'Creates that found none' }),
      },
      { description: 'Its pool of started sandboxes. Absent where it keeps none. Atoll only' },
    ),
  ),
  labels: Type.Optional(mapOf(Type.String(), 'What its operator says of it (`ATOLL_NODE_LABELS`). Atoll only')),
};

/** Answer of GET /nodes/{nodeID}, for operators. */
export const NodeDetail = Type.Object(detail, { $id: 'NodeDetail' });
export type NodeDetail = Static<typeof NodeDetail>;

/** One element of GET /nodes, for operators. */
export const Node = Type.Object({ ...detail, sandboxStartingCount: int32({ minimum: 0 }) }, { $id: 'Node' });
export type Node = Static<typeof Node>;

/** Body of POST /nodes/{nodeID}, for operators. */
export const NodeStatusChange = Type.Object(
  { status: oneOf(nodeStatuses), clusterID: Type.Optional(Type.String()) },
  { $id: 'NodeStatusChange' },
);
