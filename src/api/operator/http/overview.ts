import { Type } from '@sinclair/typebox';
import { formatTime } from '../../../base/time.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import { InstallationOverview, NodeMetric } from '../../../protocol/api/overview.ts';
import { int64 } from '../../../protocol/api/primitives.ts';
import { route } from '../../http/route.ts';
import type { Db } from '../../database/db.ts';
import type { NodeHistory } from '../../metrics/node-history.ts';
import type { Measures } from '../../metrics/measures.ts';
import type { Nodes } from '../../placement/nodes.ts';
import { requireKnown } from '../rules/nodes.ts';

type OverviewDeps = { db: Db; measures: Measures; nodeHistory: NodeHistory; nodes: Nodes; startedAtUs: number };

const ofMs = (ms: number) => formatTime(ms * 1_000);
const ofSeconds = (seconds: number) => formatTime(seconds * microsPerSecond);

/** `GET /admin/overview` */
export const readOverviewRoute = route({
  operationId: 'adminReadOverview',
  method: 'GET',
  path: '/admin/overview',
  summary: 'Get how creates, reconcilers and disks do, as the process that answers has seen it since it started',
  auth: 'admin',
  responses: { 200: { description: 'What it has seen', schema: InstallationOverview } },
  async handle({ measures, nodeHistory, nodes, startedAtUs }: OverviewDeps) {
    const { recent } = measures;
    const reconcilers = recent
      .rounds()
      .map(({ name, atMs, ok, runs, failures, failedAtMs }) => ({
        name,
        lastRunAt: ofMs(atMs),
        lastResult: ok ? ('ok' as const) : ('failed' as const),
        runs,
        failures,
        lastFailedAt: failedAtMs === null ? null : ofMs(failedAtMs),
      }));
    const disks = nodes
      .list()
      .flatMap(({ nodeId }) => nodeHistory.forecast(nodeId))
      .map(({ nodeId, fullAtSeconds, ...disk }) => ({
        nodeID: nodeId,
        ...disk,
        fullAt: fullAtSeconds === null ? null : ofSeconds(fullAtSeconds),
      }));
    const body = { since: formatTime(startedAtUs), creates: recent.creates(Date.now()), reconcilers, disks };
    return { status: 200, body };
  },
});

/** `GET /nodes/{nodeID}/metrics` */
export const readNodeMetricsRoute = route({
  operationId: 'getNodeMetrics',
  method: 'GET',
  path: '/nodes/{nodeID}/metrics',
  summary: 'Get what a node used in the last day, a sample a minute, as the process that answers has seen it',
  auth: 'admin',
  params: Type.Object({ nodeID: Type.String() }),
  query: Type.Object({
    start: Type.Optional(int64({ minimum: 0, description: 'Seconds of Unix time, inclusive' })),
    end: Type.Optional(int64({ minimum: 0, description: 'Seconds of Unix time, inclusive' })),
  }),
  responses: { 200: { description: 'The samples, the oldest first', schema: Type.Array(NodeMetric) } },
  errors: [404],
  async handle({ db, nodeHistory, nodes }: OverviewDeps, { params, query }) {
    await requireKnown({ db, nodes }, params.nodeID);
    const { start = 0, end = Number.MAX_SAFE_INTEGER } = query;
    const samples = nodeHistory.of(params.nodeID).filter(({ atSeconds: at }) => at >= start && at <= end);
    const body = samples.map(({ atSeconds, disks, ...sample }) => ({
      timestamp: ofSeconds(atSeconds),
      timestampUnix: atSeconds,
      ...sample,
      disks: [...disks],
    }));
    return { status: 200, body };
  },
});
