import type { Server } from 'bun';
import { AtollError } from '../base/error.ts';
import { isPlatform, requireAccess } from './access.ts';
import type { Agent } from './agent.ts';
import { errorAnswer } from './answer.ts';
import { collectGarbageAfterWork } from './collect-garbage.ts';
import type { Methods } from './connect/call.ts';
import { serveCall } from './connect/serve-call.ts';
import { allowOrigins, preflight } from './cors.ts';
import { init } from './init-route.ts';
import { followLogs } from './journal/route.ts';
import type { Routes } from './route.ts';

/** Everything that a request to the agent can reach. */
type Serving = { agent: Agent; routes: Routes; methods: Methods };

/**
 * Serves the in-sandbox interface on every address of the sandbox. Callers inside and outside are treated alike.
 * Connections have no timeout: streams are silent as long as their processes are.
 */
export function serve(serving: Serving, port: number): Server<undefined> {
  const worked = collectGarbageAfterWork();
  const options = {
    port,
    // Shared with the socket by which init holds the port while no agent runs.
    reusePort: port !== 0,
    idleTimeout: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    fetch: async (request: Request) => {
      worked();
      serving.agent.afterAnswer.settle();
      return allowOrigins(request, await answer(serving, request).catch(errorAnswer));
    },
    error: errorAnswer,
  };
  try {
    return Bun.serve({ hostname: '::', ...options });
  } catch {
    // The sandbox has no IPv6.
    return Bun.serve({ hostname: '0.0.0.0', ...options });
  }
}

async function answer({ agent, routes, methods }: Serving, request: Request): Promise<Response> {
  const url = new URL(request.url);
  const path = url.pathname;
  if (path === '/health' && request.method === 'GET')
    return new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } });
  if (request.method === 'OPTIONS') return preflight(request);
  if (path === '/init') {
    // For everybody else, this route does not exist.
    if (request.method !== 'POST' || !isPlatform(request, agent.state.controlToken)) throw noRoute(request, path);
    return init(agent, request);
  }
  if (path === '/logs') {
    if (request.method !== 'GET' || !isPlatform(request, agent.state.controlToken)) throw noRoute(request, path);
    return followLogs(agent, url);
  }
  const settings = agent.store.current;
  if (!settings) throw new AtollError('unavailable', 'the sandbox is not ready yet');
  const call = methods.get(path);
  if (call) {
    requireAccess(request, settings.accessToken);
    if (request.method !== 'POST') return new Response(null, { status: 405, headers: { allow: 'POST' } });
    return serveCall(call, request);
  }
  const route =
    routes.get(`${request.method} ${path}`) ?? (request.method === 'HEAD' ? routes.get(`GET ${path}`) : undefined);
  if (!route?.open) requireAccess(request, settings.accessToken);
  if (!route) throw noRoute(request, path);
  return route.answer(agent, request, url);
}

const noRoute = (request: Request, path: string) =>
  new AtollError('not_found', `there is no ${request.method} ${path}`);
