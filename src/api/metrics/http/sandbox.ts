import { Type } from '@sinclair/typebox';
import { SandboxesMetrics, SandboxMetric, SandboxTraffic } from '../../../protocol/api/metrics.ts';
import { int64 } from '../../../protocol/api/primitives.ts';
import type { SandboxSample } from '../../../protocol/node-usage.ts';
import { formatTime } from '../../../base/time.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import { batchMax, readLatestSamples, readSamples, readTraffic } from '../rules/sandbox.ts';
import { type Charging, chargeRequests } from '../../credential/rules/rate-limit.ts';
import { route } from '../../http/route.ts';
import { sandboxParams } from '../../sandbox/http/read.ts';
import type { Db } from '../../database/db.ts';
import type { Nodes } from '../../placement/nodes.ts';

/** The members of a query that asks for a range of time. */
export const rangeQuery = {
  start: Type.Optional(int64({ minimum: 0, description: 'Unix seconds, inclusive' })),
  end: Type.Optional(int64({ minimum: 0, description: 'Unix seconds, inclusive' })),
};

/** Samples that count as one more request: a day of them takes as long as some dozen requests. */
const samplesPerRequest = 40;

/** `GET /sandboxes/{sandboxID}/metrics` */
export const readSandboxMetrics = route({
  operationId: 'getSandboxMetrics',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/metrics',
  summary: 'Get the metrics of a sandbox, oldest first; empty for an unknown one',
  auth: 'team',
  params: sandboxParams,
  query: Type.Object(rangeQuery),
  responses: {
    200: {
      description: 'About one sample every 5 s; fewer of a long range',
      schema: Type.Array(SandboxMetric),
      headers: { 'X-Partial': '`true` where a machine that has some of them is out of reach now' },
    },
  },
  async handle(deps: { db: Db; nodes: Nodes } & Charging, { caller, params, query }) {
    const { samples, isPartial } = await readSamples(deps, caller.team, params.sandboxID, query);
    chargeRequests(deps, caller, Math.floor(samples.length / samplesPerRequest));
    return { status: 200, body: samples.map(metricView), ...(isPartial && { headers: { 'X-Partial': 'true' } }) };
  },
});

/** `GET /sandboxes/metrics` */
export const readSandboxesMetrics = route({
  operationId: 'getSandboxesMetrics',
  method: 'GET',
  path: '/sandboxes/metrics',
  summary: 'Get the latest metrics of several sandboxes',
  auth: 'team',
  query: Type.Object({ sandbox_ids: Type.Array(Type.String(), { maxItems: batchMax }) }),
  responses: {
    200: { description: 'The latest sample of each; those without are left out', schema: SandboxesMetrics },
  },
  async handle(deps: { db: Db; nodes: Nodes }, { caller, query }) {
    const { samples, isPartial } = await readLatestSamples(deps, caller.team, query.sandbox_ids);
    const latest = Object.entries(samples).map(([id, sample]) => [id, metricView(sample)] as const);
    return { status: 200, body: { sandboxes: Object.fromEntries(latest), ...(isPartial && { partial: true }) } };
  },
});

/** `GET /sandboxes/{sandboxID}/traffic` */
export const readSandboxTraffic = route({
  operationId: 'getSandboxTraffic',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/traffic',
  summary: 'Get the network traffic of a running sandbox since it was created or resumed',
  auth: 'team',
  params: sandboxParams,
  responses: { 200: { description: 'The counters', schema: SandboxTraffic } },
  errors: [404, 409],
  async handle(deps: { db: Db; nodes: Nodes }, { caller, params }) {
    const { bytesOut, bytesIn, denied } = await readTraffic(deps, caller.team, params.sandboxID);
    return { status: 200, body: { bytesOut, bytesIn, denied } };
  },
});

function metricView({ atSeconds, ...sample }: SandboxSample): SandboxMetric {
  return { timestamp: formatTime(atSeconds * microsPerSecond), timestampUnix: atSeconds, ...sample };
}
