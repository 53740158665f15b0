import { gauge, total, writeFamilies } from '../../base/meter.ts';
import type { Family, Sample } from '../../base/meter.ts';
import { platformVersion } from '../../base/version.ts';
import type { NodeInfo, NodeUsage } from '../../protocol/node.ts';
import { sandboxStates } from '../../protocol/state.ts';
import { buildCounts, stateCounts } from '../store/sandbox-counts.ts';
import type { App } from './context.ts';

/** The text that Prometheus scrapes: what this process has counted, what the store has, and what each machine says of itself. */
export async function operatorMetrics(app: App): Promise<string> {
  const [states, builds, nodes] = await Promise.all([stateCounts(app.store.db), buildCounts(app.store.db), Promise.all(app.nodes.list().map(node => reportOf(app, node.nodeId)))]);
  const openBuilds = (['waiting', 'building'] as const).map(status => ({ labels: { status }, value: builds.get(status) ?? 0 }));
  return writeFamilies([
    { name: 'atoll_info', help: 'The version that runs', kind: 'gauge', samples: [{ labels: { version: platformVersion, commit: app.commit }, value: 1 }] },
    { name: 'atoll_sandboxes', help: 'Sandboxes by state', kind: 'gauge', samples: sandboxStates.map(state => ({ labels: { state }, value: states.get(state) ?? 0 })) },
    { name: 'atoll_builds', help: 'Builds of templates that wait or run', kind: 'gauge', samples: openBuilds },
    ...app.measures.families(),
    ...nodeFamilies(nodes),
    ...app.families(),
    ...processFamilies(),
  ]);
}

type Report = { nodeId: string; info: NodeInfo | null; usage: NodeUsage | null };

async function reportOf(app: App, nodeId: string): Promise<Report> {
  const node = app.nodes.get(nodeId);
  const [info, usage] = await Promise.all([node.info().catch(() => null), node.usage().catch(() => null)]);
  return { nodeId, info, usage };
}

/** A machine that does not answer has `atoll_node_up` 0 and nothing else. */
function nodeFamilies(nodes: readonly Report[]): Family[] {
  const family = (kind: Family['kind'], name: string, help: string, samplesOf: (node: { info: NodeInfo; usage: NodeUsage }) => Sample[] | number | undefined): Family => ({
    name: `atoll_node_${name}`,
    help,
    kind,
    samples: nodes.flatMap(({ nodeId, info, usage }) => {
      const samples = info && usage ? (samplesOf({ info, usage }) ?? []) : [];
      return (typeof samples === 'number' ? [{ value: samples }] : samples).map(sample => ({ ...sample, labels: { node: nodeId, ...sample.labels } }));
    }),
  });
  return [
    { name: 'atoll_node_up', help: 'Whether a machine answers', kind: 'gauge', samples: nodes.map(({ nodeId, info, usage }) => ({ labels: { node: nodeId }, value: info && usage ? 1 : 0 })) },
    family('gauge', 'sandboxes', 'Sandboxes that run on the machine', ({ info }) => info.sandboxCount),
    family('gauge', 'sandboxes_max', 'Sandboxes that it can run, blank ones included', ({ info }) => info.sandboxesMax),
    family('gauge', 'cpus', 'Its processors', ({ info }) => info.cpuCount),
    family('gauge', 'cpu_used_ratio', 'The share of its processors that is used, 0 to 1', ({ usage }) => usage.cpuPercent / 100),
    family('gauge', 'memory_bytes', 'Its memory', ({ info }) => info.memoryBytes),
    family('gauge', 'memory_used_bytes', 'Memory that is not available any more', ({ usage }) => usage.memoryUsedBytes),
    family('gauge', 'disk_bytes', 'Its file systems', ({ usage }) => usage.disks.map(disk => ({ labels: { mountpoint: disk.mountPoint, device: disk.device }, value: disk.totalBytes }))),
    family('gauge', 'disk_used_bytes', 'What they hold', ({ usage }) => usage.disks.map(disk => ({ labels: { mountpoint: disk.mountPoint, device: disk.device }, value: disk.usedBytes }))),
    family('gauge', 'disk_free_bytes', 'What is free on the file system of the data directory', ({ usage }) => usage.space.freeBytes),
    family('gauge', 'disk_owed_bytes', 'What sandboxes and volumes may still take of it without asking', ({ usage }) => usage.space.owedBytes),
    family('gauge', 'disk_reserve_bytes', 'What nobody but the platform itself may take; at half of it, sandboxes can write nothing new', ({ usage }) => usage.space.reserveBytes),
    family('gauge', 'disk_held', 'Whether sandboxes can write nothing new', ({ usage }) => Number(usage.space.held)),
    family('gauge', 'disk_failed', 'Disks of sandboxes and volumes whose file system has given up', ({ usage }) => usage.space.failedDisks),
    family('gauge', 'pool_size', 'Blank sandboxes that are to wait', ({ usage }) => usage.pool?.size),
    family('gauge', 'pool_ready', 'Blank sandboxes that wait', ({ usage }) => usage.pool?.ready),
    family('counter', 'pool_claims_total', 'Claims of blank sandboxes; a miss was started from nothing', ({ usage }) =>
      usage.pool && [
        { labels: { result: 'hit' }, value: usage.pool.hits },
        { labels: { result: 'miss' }, value: usage.pool.misses },
      ]),
    family('counter', 'pool_refills_total', 'Starts of blank sandboxes for the pool', ({ usage }) =>
      usage.pool && [
        { labels: { result: 'ok' }, value: usage.pool.refills },
        { labels: { result: 'failed' }, value: usage.pool.failures },
      ]),
    family('counter', 'egress_sent_bytes_total', 'What sandboxes have sent by themselves', ({ usage }) => usage.traffic.bytesOut),
    family('counter', 'egress_received_bytes_total', 'What they have received', ({ usage }) => usage.traffic.bytesIn),
    family('counter', 'egress_denied_total', 'Packets and connections that policies have refused', ({ usage }) => usage.traffic.denied),
  ];
}

/** By the names that every exporter uses. */
function processFamilies(): Family[] {
  const { user, system } = process.cpuUsage();
  return [
    total('process_cpu_seconds_total', 'Processor time of the platform\'s process', (user + system) / 1e6),
    gauge('process_resident_memory_bytes', 'Memory of the platform\'s process', process.memoryUsage.rss()),
    gauge('process_start_time_seconds', 'When it started, Unix time', performance.timeOrigin / 1000),
  ];
}
