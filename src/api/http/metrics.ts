import { Type } from '@sinclair/typebox';
import { operatorMetrics } from '../app/operator-metrics.ts';
import { route } from './route.ts';

export const readOperatorMetrics = route({
  operationId: 'getMetrics',
  method: 'GET',
  path: '/metrics',
  summary: 'Numbers about the platform, for Prometheus',
  auth: 'scraper',
  responses: { 200: { description: 'Text format 0.0.4', schema: Type.String(), contentType: 'text/plain; version=0.0.4; charset=utf-8' } },
  async handle(app) {
    return { status: 200, body: await operatorMetrics(app) };
  },
});
