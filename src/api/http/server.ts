import { chmodSync } from 'node:fs';
import { AtollError, messageOf } from '../../base/error.ts';
import type { Caller } from '../app/authentication.ts';
import type { App } from '../app/context.ts';
import { authenticateRequest } from './authenticate.ts';
import { readJson } from './body.ts';
import { addCors, preflightResponse } from './cors.ts';
import { errorBody, errorResponse } from './error.ts';
import { routeTable } from './match.ts';
import { queryValidator } from './query.ts';
import type { Input, Reply, Route } from './route.ts';
import { freeSocketPath } from './socket-path.ts';
import { answerChecker, validator } from './validate.ts';
import type { Validator } from './validate.ts';

/**
 * Bun closes connections that are silent for this long, requests under way included; no operation takes longer.
 * It obeys this on unix sockets too (default 10 s), although its types leave the option out there.
 */
const idleTimeoutSeconds = 255;

export type ServerOptions = {
  app: App;
  routes: readonly Route[];
  /** Path of the unix socket to listen on. */
  socketPath: string;
  /** False: every route answers 503. */
  isReady(): boolean;
  /** Check every answer against its schema and fail on a difference. For tests: it costs time. */
  checkAnswers?: boolean;
};

type Compiled = {
  method: Route['method'];
  path: string;
  route: Route;
  query: Validator | null;
  body: Validator | null;
  /** By status; empty unless answers are checked. */
  answers: Map<number, (body: unknown) => void>;
};

/** Requests that are under way when the server stops may take this long to end. */
const drainMs = 10_000;

/** Serves the REST API on a unix socket that only this user can open. `stop` lets requests that are under way end. */
export async function serveApi(options: ServerOptions): Promise<{ stop(): Promise<void> }> {
  await freeSocketPath(options.socketPath);
  const table = routeTable(options.routes.map(route => compile(route, options.checkAnswers ?? false)));
  const timeouts = { idleTimeout: idleTimeoutSeconds };
  const server = Bun.serve({
    unix: options.socketPath,
    ...(timeouts as object),
    // The limit that clients meet is body.ts's: it answers as the API does, this one with an empty body.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    async fetch(request) {
      const response = await respond(options, table, request);
      addCors(response.headers);
      return response;
    },
  });
  chmodSync(options.socketPath, 0o600);
  return {
    async stop() {
      const cutOff = setTimeout(() => void server.stop(true), drainMs);
      await server.stop(false);
      clearTimeout(cutOff);
    },
  };
}

async function respond(
  options: ServerOptions,
  table: ReturnType<typeof routeTable<Compiled>>,
  request: Request,
): Promise<Response> {
  if (request.method === 'OPTIONS') return preflightResponse();
  const { path, query } = splitUrl(request.url);
  try {
    const match = table(request.method, path);
    if (match.kind === 'not_found') return errorBody({ code: 404, message: `No such route: ${request.method} ${path}` });
    if (match.kind === 'method_not_allowed') {
      const message = `${request.method} is not allowed here; allowed: ${match.allowed.join(', ')}`;
      return errorBody({ code: 405, message }, { Allow: match.allowed.join(', ') });
    }
    if (!options.isReady()) {
      throw new AtollError('unavailable', 'The platform is starting; nothing was changed', { retryAfterSeconds: 1 });
    }
    const reply = await answer(options.app, match.route, match.params, query, request);
    match.route.answers.get(reply.status)?.(reply.body);
    return responseOf(reply);
  } catch (error) {
    return logged(options.app, request.method, path, error);
  }
}

async function answer(
  app: App,
  { route, query: validQuery, body: validBody }: Compiled,
  params: Record<string, string>,
  query: string,
  request: Request,
): Promise<Reply> {
  const caller = await authenticateRequest(app, route, request.headers);
  const input: Input<Caller | null, unknown, unknown, unknown> = {
    caller,
    params,
    query: validQuery?.(query),
    body: undefined,
    origin: originOf(request.headers),
    userAgent: request.headers.get('user-agent') ?? '',
    upload: { stream: validBody ? null : request.body, length: lengthOf(request.headers) },
    signal: request.signal,
  };
  if (validBody) {
    const body = await readJson(request);
    if (body === undefined && !route.bodyOptional) throw new AtollError('invalid', 'request body: is required');
    input.body = validBody(body ?? {});
  }
  return route.handle(app, input);
}

function originOf(headers: Headers): string {
  return `${headers.get('x-forwarded-proto') ?? 'http'}://${headers.get('host') ?? 'localhost'}`;
}

function lengthOf(headers: Headers): number | null {
  const length = headers.get('content-length');
  return length === null ? null : Number(length);
}

function compile(route: Route, checkAnswers: boolean): Compiled {
  const answers = new Map<number, (body: unknown) => void>();
  for (const [status, { schema }] of Object.entries(route.responses)) {
    if (schema && checkAnswers) answers.set(Number(status), answerChecker(schema, `answer of ${route.operationId}`));
  }
  return {
    method: route.method,
    path: route.path,
    route,
    query: route.query && queryValidator(route.query),
    body: route.body && validator(route.body, 'request body'),
    answers,
  };
}

function responseOf({ status, body, headers = {} }: Reply): Response {
  return body === undefined ? new Response(null, { status, headers }) : Response.json(body, { status, headers });
}

function logged(app: App, method: string, path: string, error: unknown): Response {
  const response = errorResponse(error);
  const fields = { method, path, status: response.status, error: messageOf(error) };
  if (response.status < 500) app.log.debug('request refused', fields);
  else if (error instanceof AtollError) app.log.error('request failed', { ...fields, ...error.fields, cause: messageOf(error.cause) });
  else app.log.error('request failed', { ...fields, stack: error instanceof Error ? error.stack : undefined });
  return response;
}

/** The raw path and query of a request's URL; with a Host that is none, Bun gives the URL without its origin. */
function splitUrl(url: string): { path: string; query: string } {
  const pathStart = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2);
  const queryStart = url.indexOf('?', pathStart);
  return queryStart < 0
    ? { path: url.slice(pathStart), query: '' }
    : { path: url.slice(pathStart, queryStart), query: url.slice(queryStart + 1) };
}
