import { json } from './answer.ts';
import type { Route } from './route.ts';
import { createMetrics } from './sandbox/metrics.ts';

/** Routes about the sandbox as a whole. */
export function sandboxRoutes(): [methodAndPath: string, route: Route][] {
  const metrics = createMetrics();
  return [
    ['GET /envs', { answer: agent => json(agent.settings().envVars) }],
    ['GET /metrics', { answer: agent => json(metrics.read(agent.settings()), 200, { 'cache-control': 'no-store' }) }],
  ];
}
