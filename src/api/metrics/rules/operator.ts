import { readdirSync } from 'node:fs';
import { gauge, total, writeMetrics } from '../../../base/telemetry/meter.ts';
import type { Metric } from '../../../base/telemetry/meter.ts';
import { platformVersion } from '../../../base/version.ts';
import { sandboxStates } from '../../../protocol/state.ts';
import { buildCounts, stateCounts } from '../../sandbox/store/counts.ts';
import { unlessAborted } from '../../../base/concurrency/unless-aborted.ts';
import type { NodeProtocol } from '../../../protocol/node.ts';
import type { Db } from '../../database/db.ts';
import { findInstallation } from '../../database/installation.ts';
import { nodeMetrics, type NodeReport, withRestarts } from './node-metrics.ts';
import type { Measures } from '../measures.ts';
import type { Nodes } from '../../placement/nodes.ts';

/** What the operator's metrics are made from. */
export type OperatorMetricsDeps = {
  commit: string;
  db: Db;
  metrics: () => Metric[];
  measures: Measures;
  nodes: Nodes;
  /** The store of a cluster; null where there is none. */
  store: { isUsable: boolean } | null;
};

/**
 * How long to wait for a machine, ms: Prometheus gives up a scrape after ten seconds, and then everything looks down.
 */
const nodeAnswerMs = 3_000;

/**
 * The text that Prometheus scrapes: what this process has counted, what the store has, and what each machine reports.
 */
export async function operatorMetrics(deps: OperatorMetricsDeps, answerMs: number = nodeAnswerMs): Promise<string> {
  const [states, builds, nodes, known] = await Promise.all([
    stateCounts(deps.db),
    buildCounts(deps.db),
    reportsOf(deps.nodes, answerMs),
    findInstallation(deps.db),
  ]);
  // All control processes of a cluster report the content of its one database; the installation's ID lets that be
  // counted once.
  const whose = known ? { installation: known.installationId } : {};
  const openBuilds = (['waiting', 'building'] as const).map(status => ({
    labels: { ...whose, status },
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
      samples: sandboxStates.map(state => ({ labels: { ...whose, state }, value: states.get(state) ?? 0 })),
    },
    { name: 'atoll_builds', help: 'Builds of templates that wait or run', kind: 'gauge', samples: openBuilds },
    {
      name: 'atoll_store_up',
      help: "Whether the cluster's store can be used",
      kind: 'gauge',
      samples: deps.store ? [{ labels: {}, value: Number(deps.store.isUsable) }] : [],
    },
    ...deps.measures.metrics(),
    ...nodeMetrics(nodes),
    ...withRestarts(deps.metrics(), nodes),
    ...processMetrics(),
  ]);
}

/** A machine out of reach is not asked, but must be visible all the same: one that vanished would alert nobody. */
async function reportsOf(nodes: Nodes, answerMs: number): Promise<NodeReport[]> {
  const away = (nodes.away?.() ?? []).filter(({ isConnecting }) => !isConnecting);
  return [
    ...(await Promise.all(nodes.list().map(({ nodeId, protocol }) => reportOf(nodeId, protocol, answerMs)))),
    ...away.map(({ nodeId }) => ({ nodeId, info: null, usage: null })),
  ];
}

async function reportOf(nodeId: string, node: NodeProtocol, answerMs: number): Promise<NodeReport> {
  const signal = AbortSignal.timeout(answerMs);
  const answered = <T>(answer: Promise<T>) => unlessAborted(answer, signal, 'the machine is silent').catch(() => null);
  const [info, usage] = await Promise.all([answered(node.info()), answered(node.usage())]);
  return { nodeId, info, usage };
}

/** Under the names that every exporter uses. */
function processMetrics(): Metric[] {
  const { user, system } = process.cpuUsage();
  return [
    total('process_cpu_seconds_total', "Processor time of the platform's process", (user + system) / 1e6),
    gauge('process_resident_memory_bytes', "Memory of the platform's process", process.memoryUsage.rss()),
    gauge('process_open_fds', "Open files of the platform's process", readdirSync('/proc/self/fd').length - 1),
    gauge('process_start_time_seconds', 'When it started, Unix time', performance.timeOrigin / 1000),
  ];
}
