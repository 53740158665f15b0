import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../../src/base/error.ts';
import { createLog } from '../../../src/base/telemetry/log.ts';
import type { Ingress, Route } from '../../../src/protocol/directory.ts';
import { type Edge, type EdgeOptions, startEdge } from '../../../src/edge/start.ts';
import { dialLoopback } from './loopback-dial.ts';

const openIngress: Ingress = {
  trafficAccessToken: null,
  accessToken: null,
  maskRequestHost: null,
  httpsPorts: [],
  autoResume: false,
};

/** An edge with an API behind it, and sandboxes whose ports are ports of this host's loopback. */
export type Fixture = AsyncDisposable & {
  readonly edge: Edge;
  readonly port: number;
  readonly url: string;
  /** Adds or changes a sandbox. */
  sandbox(sandboxId: string, change?: Partial<Omit<Route, 'ingress'>> & { ingress?: Partial<Ingress> }): Route;
  /** The result of `dial` for a port: another port of the loopback. */
  mapPort(port: number, loopbackPort: number): void;
  readonly dials: { sandboxId: string; port: number }[];
  readonly wakes: string[];
  /** The errors that the edge has logged. */
  readonly complaints: string[];
  remove(sandboxId: string): void;
};

export type FixtureOptions = Partial<EdgeOptions> & {
  readonly api?: (request: Request, server: Bun.Server<undefined>) => Response | Promise<Response>;
  readonly wake?: (route: Route, fixture: Fixture) => Promise<Route>;
};

export function startFixture(options: FixtureOptions = {}): Fixture {
  // If the edge refuses to start, nothing else stays.
  using started = new DisposableStack();
  const folder = started.adopt(mkdtempSync(join(tmpdir(), 'edge-')), path =>
    rmSync(path, { recursive: true, force: true }),
  );
  const apiSocketPath = join(folder, 'api.sock');
  const answer =
    options.api ?? (request => Response.json({ api: new URL(request.url).pathname, headers: request.headers }));
  started.adopt(Bun.serve({ unix: apiSocketPath, fetch: answer }), api => void api.stop(true));
  const routes = new Map<string, Route>();
  const portMap = new Map<number, number>();
  const dials: Fixture['dials'] = [];
  const wakes: string[] = [];
  const complaints: string[] = [];
  const edge = startEdge({
    hostname: '127.0.0.1',
    port: 0,
    apiSocketPath,
    log: createLog('error', line => complaints.push(line)),
    directory: {
      find: sandboxId => routes.get(sandboxId),
      running: () => routes.values(),
      async wake(sandboxId) {
        wakes.push(sandboxId);
        const route = routes.get(sandboxId);
        if (route === undefined) throw new AtollError('not_found', 'gone');
        return options.wake === undefined
          ? fixture.sandbox(sandboxId, { state: 'running' })
          : options.wake(route, fixture);
      },
    },
    async dial(sandboxId, port) {
      dials.push({ sandboxId, port });
      if (!routes.has(sandboxId)) throw new AtollError('not_found', 'not here');
      return dialLoopback(portMap.get(port) ?? port);
    },
    ...options,
  });
  const fixture: Fixture = {
    edge,
    port: edge.port,
    url: `http://127.0.0.1:${edge.port}`,
    dials,
    wakes,
    complaints,
    sandbox(sandboxId, change = {}) {
      const before = routes.get(sandboxId) ?? {
        sandboxId,
        teamId: 'team',
        nodeId: 'n',
        executionId: crypto.randomUUID(),
        state: 'running',
        ingress: openIngress,
      };
      const route: Route = { ...before, ...change, ingress: { ...before.ingress, ...change.ingress } };
      routes.set(sandboxId, route);
      return route;
    },
    mapPort: (port, loopbackPort) => void portMap.set(port, loopbackPort),
    remove(sandboxId) {
      const route = routes.get(sandboxId);
      routes.delete(sandboxId);
      if (route !== undefined) edge.closed(route);
    },
    async [Symbol.asyncDispose]() {
      await edge.stop(0);
      running.dispose();
      const failed = complaints.filter(line => line.includes('handler failed'));
      if (failed.length > 0) throw new Error(`a handler of the edge has thrown: ${failed[0]}`);
    },
  };
  const running = started.move();
  return fixture;
}

/** The headers that route a request to a port of a sandbox. */
export function to(sandboxId: string, port: number): Record<string, string> {
  return { 'E2b-Sandbox-Id': sandboxId, 'E2b-Sandbox-Port': String(port) };
}
