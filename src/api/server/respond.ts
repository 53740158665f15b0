import type { InTurn } from '../../base/concurrency/long-reads.ts';
import { AtollError, messageOf } from '../../base/error.ts';
import { JsonText } from '../../base/json-text.ts';
import { describeTrace, step } from '../../base/telemetry/trace.ts';
import { recordChange } from '../event/rules/audit.ts';
import { bytesPerRequest, chargeBody, chargeTime, limitRate } from '../credential/rules/rate-limit.ts';
import type { RateQuota } from '../credential/rules/rate-limit.ts';
import { authenticateRequest, isStillLetIn } from './authenticate.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { toKnown } from '../../protocol/no-room.ts';
import type { AuthenticationDeps } from '../credential/rules/authenticate.ts';
import type { RateLimiter } from '../credential/rules/rate-limit.ts';
import type { AuditBacklog } from '../event/rules/audit-backlog.ts';
import type { Measures } from '../metrics/measures.ts';
import type { LimitsOf } from '../team/rules/limits.ts';
import { readJson } from '../http/body.ts';
import type { CompiledRoute } from '../http/compile.ts';
import { preflightResponse } from './cors.ts';
import { errorBody, errorResponse } from '../http/error.ts';
import { isSameOrigin } from '../session/cookie.ts';
import type { RouteTable } from '../http/match.ts';
import type { Reply, Route } from '../http/route.ts';
import type { Change } from '../event/record.ts';
import type { Caller } from '../credential/caller.ts';

/** What answering any request needs: the caller, its rate, and the record of its change. */
export type RespondDeps = AuthenticationDeps & {
  limitsOf: LimitsOf;
  rateLimiter: RateLimiter;
  /** Turns of teams that read many rows. */
  readsInTurn: InTurn;
  wrongCredentials: RateLimiter;
  auditBacklog: AuditBacklog;
  /** Resolves when everything committed survives a loss of power. */
  flushed: () => Promise<void>;
  measures: Measures;
  log: Log;
};

/** The answer to any request; never fails. */
export async function respond<Parts extends RespondDeps>(
  parts: Parts,
  table: RouteTable<CompiledRoute<Parts>>,
  isReady: () => boolean,
  request: Request,
): Promise<Response> {
  const answered = parts.measures.request(request.method);
  const served: { route: Route | null } = { route: null };
  const response =
    request.method === 'OPTIONS' ? preflightResponse() : await answerTo(parts, table, isReady, request, served);
  const { route } = served;
  const { status } = response;
  if (route?.noStore) response.headers.set('Cache-Control', 'no-store');
  answered(route?.path ?? null, status);
  const attributes = {
    'http.request.method': request.method,
    ...(route && { 'http.route': route.path }),
    'http.response.status_code': status,
  };
  describeTrace(
    `${request.method}${route ? ` ${route.path}` : ''}`,
    attributes,
    status >= 500 ? `HTTP ${status}` : undefined,
  );
  return response;
}

/** `served` is told which route it was. */
async function answerTo<Parts extends RespondDeps>(
  parts: Parts,
  table: RouteTable<CompiledRoute<Parts>>,
  isReady: () => boolean,
  request: Request,
  served: { route: Route | null },
): Promise<Response> {
  const { path, query } = splitUrl(request.url);
  try {
    const match = table(request.method, path);
    if (match.kind === 'not_found')
      return errorBody({ code: 404, message: `No such route: ${request.method} ${path}${hintFor(path)}` });
    if (match.kind === 'found' && request.method === 'HEAD' && match.route.route.responses[200]?.binary) {
      return errorBody({ code: 405, message: 'HEAD is not allowed here; allowed: GET' }, { Allow: 'GET' });
    }
    if (match.kind === 'method_not_allowed') {
      const message = `${request.method} is not allowed here; allowed: ${match.allowed.join(', ')}`;
      return errorBody({ code: 405, message }, { Allow: match.allowed.join(', ') });
    }
    served.route = match.route.route;
    if (!isReady())
      throw new AtollError('unavailable', 'The platform is starting; nothing was changed', { retryAfterSeconds: 1 });
    return await answer(parts, match.route, match.params, query, request);
  } catch (error) {
    return failed(parts.log, request.method, path, error);
  }
}

/**
 * Signed URLs of files end up here when nothing says which sandbox they are for; mostly because of `E2B_SANDBOX_URL`.
 */
function hintFor(path: string): string {
  return path === '/files'
    ? ': no running sandbox is named by the host of this URL, and none that may be looked for has made its signature'
    : '';
}

/** The answer of a route: checks the caller, its rate and the input, runs the handler, and records the change. */
async function answer<Parts extends RespondDeps>(
  parts: Parts,
  compiled: CompiledRoute<Parts>,
  params: Record<string, string>,
  query: string,
  request: Request,
): Promise<Response> {
  const { route } = compiled;
  const address = addressOf(request.headers);
  const caller = await step('authenticate', () => authenticateRequest(parts, route, request.headers, address));
  const quota = limitRate(parts, caller);
  const change: Change = {};
  const others = { ms: 0 };
  const record = (status: number) =>
    route.changes
      ? step('audit', () => recordChange(parts, { operation: route.operationId, caller, address, status }, change))
      : undefined;
  let reply: Reply;
  try {
    const input = {
      caller,
      params,
      query: compiled.query?.(query),
      headers: compiled.headers?.(request.headers),
      body: compiled.body && (await readBody(parts, caller, compiled, request)),
      origin: originOf(request.headers),
      sameOrigin: isSameOrigin(request.headers),
      address: addressOf(request.headers),
      userAgent: request.headers.get('user-agent') ?? '',
      upload: { stream: compiled.body ? null : request.body, length: lengthOf(request.headers) },
      signal: request.signal,
      isStillLetIn: () => isStillLetIn(parts, route, request.headers),
      othersHad: (ms: number) => void (others.ms += ms),
      audit: (facts: Change) => void Object.assign(change, facts),
    };
    const handle = () => route.handle(parts, input);
    reply = await (route.long ? inTurn(parts, caller, request.signal, handle, others) : handle());
  } catch (error) {
    // A refused request changed nothing; one that failed may have.
    const status = toKnown(error)?.status ?? 500;
    if (status >= 500) await record(status);
    throw error;
  }
  compiled.answers.get(reply.status)?.(reply.body instanceof JsonText ? reply.body.parsed() : reply.body);
  await record(reply.status);
  if (route.durable) await parts.flushed().catch(notKept);
  return responseOf(reply, quota, route.responses[reply.status]?.contentType);
}

/** The request was carried out: whatever the disk says, the answer must not suggest that nothing changed. */
function notKept(cause: unknown): never {
  throw new AtollError(
    'internal',
    'It was done, but the disk of the platform has refused to keep it: a loss of power may undo it',
    { mayHaveChanged: true, cause },
  );
}

/**
 * Answers when it is the caller's turn, and charges the time. Hundreds of requests may come at once: without breaks
 * they would hold everybody up, and the process would look as if it stood still.
 */
function inTurn(
  parts: RespondDeps,
  caller: Caller | null,
  signal: AbortSignal,
  handle: () => Promise<Reply>,
  others: Readonly<{ ms: number }>,
): Promise<Reply> {
  return parts.readsInTurn(ownerOf(caller), async () => {
    if (signal.aborted) throw new AtollError('canceled', 'the client has gone');
    const startedAt = performance.now();
    try {
      return await handle();
    } finally {
      const ownMs = Math.max(0, performance.now() - startedAt - others.ms);
      chargeTime(parts, caller, ownMs / parts.readsInTurn.atOnce);
    }
  });
}

/** Whose turn it is: that of the team, whichever caller asks for it. */
function ownerOf(caller: Caller | null): string {
  if (caller?.kind === 'team' || caller?.kind === 'volume') return caller.team.teamId;
  return caller !== null && 'user' in caller && caller.user !== null ? `user ${caller.user.userId}` : '';
}

async function readBody(
  parts: RespondDeps,
  caller: Caller | null,
  { route, body: validate }: CompiledRoute<never>,
  request: Request,
): Promise<unknown> {
  const { value, bytes } = await readJson(request, route.bodyBytesMax);
  chargeBody(parts, caller, bytes);
  // Checking it in one go takes long too: hundreds of them must not follow each other without a break.
  if (bytes >= bytesPerRequest) await parts.readsInTurn(ownerOf(caller), () => {});
  if (value === undefined && !route.bodyOptional) throw new AtollError('invalid', 'request body: is required');
  // Null is a value that no route accepts: it must not be read as an empty object, which resets what it replaces.
  return validate?.(value === undefined ? {} : value);
}

function responseOf(
  { status, body, stream, headers = {} }: Reply,
  quota: RateQuota | null,
  contentType: string | undefined,
): Response {
  const all = quota === null ? headers : { ...headers, ...quotaHeaders(quota) };
  if (stream)
    return new Response(stream, {
      status,
      headers: { 'Content-Type': contentType ?? 'application/octet-stream', ...all },
    });
  if (contentType !== undefined)
    return new Response(String(body), { status, headers: { ...all, 'Content-Type': contentType } });
  if (body instanceof JsonText)
    return new Response(body.text, { status, headers: { ...all, 'Content-Type': 'application/json' } });
  return body === undefined
    ? new Response(null, { status, headers: all })
    : Response.json(body, { status, headers: all });
}

function quotaHeaders({ limit, remaining, resetSeconds }: RateQuota): Record<string, string> {
  return {
    'RateLimit-Limit': String(limit),
    'RateLimit-Remaining': String(remaining),
    'RateLimit-Reset': String(resetSeconds),
  };
}

function failed(log: Log, method: string, path: string, error: unknown): Response {
  const response = errorResponse(error);
  const known = toKnown(error);
  const fields = { method, path, status: response.status, error: messageOf(error) };
  if (response.status < 500) log.debug('request refused', fields);
  else if (known)
    log.error('request failed', {
      ...fields,
      ...known.fields,
      cause: known.cause === undefined ? undefined : messageOf(known.cause),
    });
  else log.error('request failed', { ...fields, stack: error instanceof Error ? error.stack : undefined });
  return response;
}

function originOf(headers: Headers): string {
  return `${headers.get('x-forwarded-proto') ?? 'http'}://${headers.get('host') ?? 'localhost'}`;
}

/** The client's address, as the edge passes it: the edge lets no client set this itself. */
function addressOf(headers: Headers): string {
  return headers.get('x-forwarded-for') ?? '';
}

function lengthOf(headers: Headers): number | null {
  const length = headers.get('content-length');
  return length === null ? null : Number(length);
}

/** The raw path and query of a request's URL; if the Host is invalid, Bun gives the URL without its origin. */
function splitUrl(url: string): { path: string; query: string } {
  const pathStart = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2);
  const queryStart = url.indexOf('?', pathStart);
  return queryStart < 0
    ? { path: url.slice(pathStart), query: '' }
    : { path: url.slice(pathStart, queryStart), query: url.slice(queryStart + 1) };
}
