import { Type } from '@sinclair/typebox';
import { SandboxesMetrics, SandboxMetric, SandboxTraffic } from '../../protocol/api/metrics.ts';
import { int64 } from '../../protocol/api/primitives.ts';
import type { SandboxSample } from '../../protocol/node.ts';
import { formatTime } from '../../base/time.ts';
import { microsPerSecond } from '../app/clock.ts';
import { batchMax, readLatestSamples, readSamples, readTraffic } from '../app/sandbox-metrics.ts';
import { route } from './route.ts';
import { sandboxParams } from './sandbox-read.ts';

/** The members of a query that asks for a range of time. */
export const rangeQuery = {
  start: Type.Optional(int64({ minimum: 0, description: 'Unix seconds, inclusive' })),
  end: Type.Optional(int64({ minimum: 0, description: 'Unix seconds, inclusive' })),
};

export const readSandboxMetrics = route({
  operationId: 'getSandboxMetrics',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/metrics',
  summary: 'What a sandbox has used, oldest first; nothing for one that is not known',
  auth: 'team',
  params: sandboxParams,
  query: Type.Object(rangeQuery),
  responses: { 200: { description: 'About one sample every 5 s; fewer of a long range', schema: Type.Array(SandboxMetric) } },
  async handle(app, { caller, params, query }) {
    return { status: 200, body: (await readSamples(app, caller.team, params.sandboxID, query)).map(metricView) };
  },
});

export const readSandboxesMetrics = route({
  operationId: 'getSandboxesMetrics',
  method: 'GET',
  path: '/sandboxes/metrics',
  summary: 'What several sandboxes use now',
  auth: 'team',
  query: Type.Object({ sandbox_ids: Type.Array(Type.String(), { maxItems: batchMax }) }),
  responses: { 200: { description: 'The latest sample of each; those without are left out', schema: SandboxesMetrics } },
  async handle(app, { caller, query }) {
    const latest = Object.entries(await readLatestSamples(app, caller.team, query.sandbox_ids));
    return { status: 200, body: { sandboxes: Object.fromEntries(latest.map(([id, sample]) => [id, metricView(sample)])) } };
  },
});

export const readSandboxTraffic = route({
  operationId: 'getSandboxTraffic',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/traffic',
  summary: 'What a running sandbox has sent and received by itself since it was created or resumed',
  auth: 'team',
  params: sandboxParams,
  responses: { 200: { description: 'The counters', schema: SandboxTraffic } },
  errors: [400, 404, 409],
  async handle(app, { caller, params }) {
    const { bytesOut, bytesIn, denied } = await readTraffic(app, caller.team, params.sandboxID);
    return { status: 200, body: { bytesOut, bytesIn, denied } };
  },
});

function metricView({ atSeconds, ...sample }: SandboxSample): SandboxMetric {
  return { timestamp: formatTime(atSeconds * microsPerSecond), timestampUnix: atSeconds, ...sample };
}
