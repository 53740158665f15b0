import { Type } from '@sinclair/typebox';
import { operatorMetrics } from '../rules/operator.ts';
import { route } from '../../http/route.ts';
import type { OperatorMetricsDeps } from '../rules/operator.ts';

/** `GET /metrics` */
export const readOperatorMetrics = route({
  operationId: 'getMetrics',
  method: 'GET',
  path: '/metrics',
  summary: 'Get the metrics of the platform, for Prometheus',
  auth: 'scraper',
  responses: {
    200: {
      description: 'Text format 0.0.4',
      schema: Type.String(),
      contentType: 'text/plain; version=0.0.4; charset=utf-8',
    },
  },
  async handle(deps: OperatorMetricsDeps) {
    return { status: 200, body: await operatorMetrics(deps) };
  },
});
