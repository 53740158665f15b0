import { chmodSync } from 'node:fs';
import { traced } from '../../base/telemetry/trace.ts';
import type { Span } from '../../base/telemetry/trace.ts';
import type { Pages } from '../dashboard/files.ts';
import { landingPage } from '../dashboard/landing.ts';
import { compileRoute } from '../http/compile.ts';
import { addCors } from './cors.ts';
import { routeTable } from '../http/match.ts';
import { respond } from './respond.ts';
import type { RespondDeps } from './respond.ts';
import type { Route } from '../http/route.ts';
import { freeSocketPath } from './socket-path.ts';

/**
 * Bun closes connections that are silent for this long, requests under way included; no operation takes longer. It
 * obeys this on unix sockets too (default 10 s), although its types leave the option out there.
 */
const idleTimeoutSeconds = 255;

/** What the server answers with, and where it listens. */
type ServerOptions<Parts extends RespondDeps> = {
  /** The parts that the routes use, and those that answering itself uses. */
  parts: Parts;
  routes: readonly Route<Parts>[];
  /** Permission bits of the socket: who may connect. */
  socketMode: number;
  /** Path of the unix socket to listen on. */
  socketPath: string;
  /** Answers requests of the dashboard; absent: there is none. */
  dashboard?: Pages;
  /** Answers requests of the documentation; absent: there is none. */
  docs?: Pages;
  /** False: every route answers 503. */
  isReady(): boolean;
  /** Check every answer against its schema and fail on a difference. For tests: it costs time. */
  checkAnswers?: boolean;
  /** Report the duration of each step of a request in a `Server-Timing` header. */
  trace?: boolean;
  /** Gets the spans of requests that clients trace, and of the given share of the others. */
  spans?: { record(spans: Span[]): void; ratio: number };
};

/** How long requests under way may take to end when the server stops. */
const drainMs = 10_000;

/** Serves the REST API on a unix socket. `stop` lets requests under way end. */
export async function serveApi<Parts extends RespondDeps>(
  options: ServerOptions<Parts>,
): Promise<{ stop(): Promise<void> }> {
  await freeSocketPath(options.socketPath);
  const table = routeTable(options.routes.map(route => compileRoute(route, options.checkAnswers ?? false)));
  const timeouts = { idleTimeout: idleTimeoutSeconds };
  const server = Bun.serve({
    unix: options.socketPath,
    ...(timeouts as object),
    // The limit that clients meet is the one of body.ts, which answers like the API; this one would answer with an
    // empty body.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    async fetch(request) {
      const page = pageFor(request, options);
      if (page) return page;
      const answer = () => respond(options.parts, table, options.isReady, request);
      const response = options.trace || options.spans ? await withTrace(answer, request, options) : await answer();
      addCors(request, response.headers);
      return response;
    },
  });
  chmodSync(options.socketPath, options.socketMode);
  return {
    async stop() {
      const cutOff = setTimeout(() => void server.stop(true), drainMs);
      await server.stop(false);
      clearTimeout(cutOff);
    },
  };
}

/** The page for people in a browser; null: the request is for the API. */
function pageFor(
  request: Request,
  { dashboard, docs }: Pick<ServerOptions<RespondDeps>, 'dashboard' | 'docs'>,
): Response | null {
  const leads = { dashboard: dashboard !== undefined, docs: docs !== undefined };
  return dashboard?.(request) ?? docs?.(request) ?? landingPage(request, leads);
}

async function withTrace(
  answer: () => Promise<Response>,
  request: Request,
  { trace, spans }: Pick<ServerOptions<RespondDeps>, 'trace' | 'spans'>,
): Promise<Response> {
  const { result, serverTiming, traceId } = await traced(answer, {
    parent: request.headers.get('traceparent'),
    ...spans,
  });
  if (trace) result.headers.set('Server-Timing', serverTiming);
  if (spans) result.headers.set('X-E2B-Trace-ID', traceId);
  return result;
}
