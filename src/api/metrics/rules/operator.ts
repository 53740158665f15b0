import { readdirSync } from 'node:fs';
import { gauge, total, writeMetrics } from '../../../base/telemetry/meter.ts';
import type { Metric } from '../../../base/telemetry/meter.ts';
import { platformVersion } from '../../../base/version.ts';
import { sandboxStates } from '../../../protocol/state.ts';
import { buildCounts, stateCounts } from '../../sandbox/store/counts.ts';
import type { Db } from '../../database/db.ts';
import { nodeMetrics, type NodeReport, withRestarts } from './node-metrics.ts';
import type { Measures } from '../measures.ts';
import type { Nodes } from '../../placement/nodes.ts';

/** What the operator's metrics are made of. */
export type OperatorMetricsDeps = { commit: string; db: Db; metrics: () => Metric[]; measures: Measures; nodes: Nodes };

/**
 * The text that Prometheus scrapes: what this process has counted, what the store has, and what each machine says of
 * itself.
 */
export async function operatorMetrics(deps: OperatorMetricsDeps): Promise<string> {
  const [states, builds, nodes] = await Promise.all([
    stateCounts(deps.db),
    buildCounts(deps.db),
    Promise.all(deps.nodes.list().map(node => reportOf(deps.nodes, node.nodeId))),
  ]);
  const openBuilds = (['waiting', 'building'] as const).map(status => ({
    labels: { status },
    value: builds.get(status) ?? 0,
  }));
  return writeMetrics([
    {
      name: 'atoll_info',
      help: 'The version that runs',
      kind: 'gauge',
      samples: [{ labels: { version: platformVersion, commit: deps.commit }, value: 1 }],
    },
    {
      name: 'atoll_sandboxes',
      help: 'Sandboxes by state',
      kind: 'gauge',
      samples: sandboxStates.map(state => ({ labels: { state }, value: states.get(state) ?? 0 })),
    },
    { name: 'atoll_builds', help: 'Builds of templates that wait or run', kind: 'gauge', samples: openBuilds },
    ...deps.measures.metrics(),
    ...nodeMetrics(nodes),
    ...withRestarts(deps.metrics(), nodes),
    ...processMetrics(),
  ]);
}

async function reportOf(nodes: Nodes, nodeId: string): Promise<NodeReport> {
  const node = nodes.get(nodeId);
  const [info, usage] = await Promise.all([node.info().catch(() => null), node.usage().catch(() => null)]);
  return { nodeId, info, usage };
}

/** By the names that every exporter uses. */
function processMetrics(): Metric[] {
  const { user, system } = process.cpuUsage();
  return [
    total('process_cpu_seconds_total', "Processor time of the platform's process", (user + system) / 1e6),
    gauge('process_resident_memory_bytes', "Memory of the platform's process", process.memoryUsage.rss()),
    gauge('process_open_fds', "Open files of the platform's process", readdirSync('/proc/self/fd').length - 1),
    gauge('process_start_time_seconds', 'When it started, Unix time', performance.timeOrigin / 1000),
  ];
}
