import type { Metric, Sample } from '../../../base/telemetry/meter.ts';
import { processRestartsMetric } from '../../../base/telemetry/process-restarts.ts';
import type { NodeInfo } from '../../../protocol/node.ts';
import type { NodeUsage, RestoredCounts } from '../../../protocol/node-usage.ts';

/** What a machine reports; both null where it does not answer. */
export type NodeReport = { nodeId: string; info: NodeInfo | null; usage: NodeUsage | null };

/** One family of `atoll_node_…`: its kind, name and help, and the samples of a machine. */
type Family = [
  kind: Metric['kind'],
  name: string,
  help: string,
  samplesOf: (node: { info: NodeInfo; usage: NodeUsage }) => Sample[] | number | undefined,
];

/** The metrics of machines. A machine that does not answer has `atoll_node_up` 0 and nothing else. */
export function nodeMetrics(nodes: readonly NodeReport[]): Metric[] {
  const samples = nodes.map(({ nodeId, info, usage }) => ({ labels: { node: nodeId }, value: info && usage ? 1 : 0 }));
  return [
    { name: 'atoll_node_up', help: 'Whether a machine answers', kind: 'gauge', samples },
    ...[...machine, ...disks, ...pool, ...restored, ...traffic].map(family => metricOf(family, nodes)),
  ];
}

/** Adds the restarts on machines of a cluster to those counted beside the api. */
export function withRestarts(metrics: readonly Metric[], nodes: readonly NodeReport[]): Metric[] {
  const samples = nodes.flatMap(({ nodeId: node, usage }) =>
    (usage?.restarts ?? []).map(({ count, ...labels }) => ({ labels: { node, ...labels }, value: count })),
  );
  return metrics.map(metric =>
    metric.name === processRestartsMetric ? { ...metric, samples: [...metric.samples, ...samples] } : metric,
  );
}

function metricOf([kind, name, help, samplesOf]: Family, nodes: readonly NodeReport[]): Metric {
  return {
    name: `atoll_node_${name}`,
    help,
    kind,
    samples: nodes.flatMap(({ nodeId, info, usage }) => {
      const samples = info && usage ? (samplesOf({ info, usage }) ?? []) : [];
      return (typeof samples === 'number' ? [{ value: samples }] : samples).map(sample => ({
        ...sample,
        labels: { node: nodeId, ...sample.labels },
      }));
    }),
  };
}

const machine: Family[] = [
  ['gauge', 'sandboxes', 'Sandboxes that run on the machine', ({ info }) => info.sandboxCount],
  ['gauge', 'sandboxes_max', 'Sandboxes that it can run, standby ones included', ({ info }) => info.sandboxesMax],
  ['gauge', 'cpus', 'Its processors', ({ info }) => info.cpuCount],
  [
    'gauge',
    'cpu_used_ratio',
    'The share of its processors that is used, 0 to 1',
    ({ usage }) => usage.cpuPercent / 100,
  ],
  ['gauge', 'memory_bytes', 'Its memory', ({ info }) => info.memoryBytes],
  ['gauge', 'memory_used_bytes', 'Memory that is not available any more', ({ usage }) => usage.memoryUsedBytes],
];

const disks: Family[] = [
  [
    'gauge',
    'disk_bytes',
    'Its file systems',
    ({ usage }) =>
      usage.disks.map(disk => ({
        labels: { mountpoint: disk.mountPoint, device: disk.device },
        value: disk.totalBytes,
      })),
  ],
  [
    'gauge',
    'disk_used_bytes',
    'What they hold',
    ({ usage }) =>
      usage.disks.map(disk => ({
        labels: { mountpoint: disk.mountPoint, device: disk.device },
        value: disk.usedBytes,
      })),
  ],
  [
    'gauge',
    'disk_free_bytes',
    'What is free on the file system of the data directory',
    ({ usage }) => usage.space.freeBytes,
  ],
  [
    'gauge',
    'disk_owed_bytes',
    'What sandboxes and volumes may still take of it without asking',
    ({ usage }) => usage.space.owedBytes,
  ],
  [
    'gauge',
    'disk_reserve_bytes',
    'What nobody but the platform itself may take; at half of it, sandboxes can write nothing new',
    ({ usage }) => usage.space.reserveBytes,
  ],
  ['gauge', 'disk_held', 'Whether sandboxes can write nothing new', ({ usage }) => Number(usage.space.held)],
  [
    'gauge',
    'disk_failed',
    'Disks of sandboxes and volumes whose file system has given up',
    ({ usage }) => usage.space.failedDisks,
  ],
];

const claimsOf = ({ hits, misses }: RestoredCounts) => [
  { labels: { result: 'hit' }, value: hits },
  { labels: { result: 'miss' }, value: misses },
];
const refillsOf = ({ refills, failures }: RestoredCounts) => [
  { labels: { result: 'ok' }, value: refills },
  { labels: { result: 'failed' }, value: failures },
];

const pool: Family[] = [
  ['gauge', 'pool_size', 'Standby sandboxes that are to wait', ({ usage }) => usage.pool?.size],
  ['gauge', 'pool_ready', 'Standby sandboxes that wait', ({ usage }) => usage.pool?.ready],
  [
    'counter',
    'pool_claims_total',
    'Claims of standby sandboxes; a miss was started from nothing',
    ({ usage }) => usage.pool && claimsOf(usage.pool),
  ],
  [
    'counter',
    'pool_refills_total',
    'Starts of standby sandboxes for the pool',
    ({ usage }) => usage.pool && refillsOf(usage.pool),
  ],
];

/** Standby sandboxes that were restored. */
const restored: Family[] = [
  ['gauge', 'pool_restored_ready', 'Restored sandboxes that wait', ({ usage }) => usage.pool?.restored?.ready],
  [
    'counter',
    'pool_restored_claims_total',
    'Claims of restored sandboxes; a miss was restored while its client waited',
    ({ usage }) => usage.pool?.restored && claimsOf(usage.pool.restored),
  ],
  [
    'counter',
    'pool_restored_refills_total',
    'Restores of sandboxes before anybody asked',
    ({ usage }) => usage.pool?.restored && refillsOf(usage.pool.restored),
  ],
];

const traffic: Family[] = [
  [
    'counter',
    'egress_sent_bytes_total',
    'What sandboxes have sent by themselves',
    ({ usage }) => usage.traffic.bytesOut,
  ],
  ['counter', 'egress_received_bytes_total', 'What they have received', ({ usage }) => usage.traffic.bytesIn],
  [
    'counter',
    'egress_denied_total',
    'Packets and connections that policies have refused',
    ({ usage }) => usage.traffic.denied,
  ],
];
