import { AtollError, messageOf } from '../base/error.ts';
import { agentPort } from '../protocol/agent.ts';
import { isPartLost } from '../protocol/part-lost.ts';
import { type Credentials, credentialsOf, refusalOfTraffic, refusalOfWake } from './admit.ts';
import {
  type Answer,
  crowded,
  internalRoute,
  portNotOpen,
  type SandboxPort,
  sandboxAnswer,
  sandboxNotFound,
  sandboxPaused,
  tooManyConnections,
  unreachable,
  tooManyOfTeam,
} from './answer.ts';
import type { Client } from './client.ts';
import { pathOf } from './compose-request.ts';
import { type EdgeContext, trafficOf } from './context.ts';
import type { Route } from '../protocol/directory.ts';
import { Exchange, isSafeToRepeat, type ServeAgain } from './exchange.ts';
import type { RequestHead } from './http/request-head.ts';
import { isInternalRoute } from './internal-routes.ts';
import { reachSandbox } from './reach.ts';
import type { SandboxTraffic } from './sandbox-traffic.ts';
import type { Share } from '../base/share.ts';
import { upgradeFor } from './upgrade.ts';
import type { Upstream } from './upstream.ts';
import { Wait } from './wait.ts';

/** The agent answers it, and a sandbox that does not run does not: asking for it wakes none. */
const healthPath = '/health';

/** A connection for a request, counted in `traffic` until the request is over. */
type Way = { readonly route: Route; readonly traffic: SandboxTraffic; readonly upstream: Upstream };

/**
 * Sends a request into a sandbox. The order of the checks is part of the contract: internal route, look-up or resume,
 * traffic token, connection limit, connection.
 */
export function serveSandbox(client: Client, head: RequestHead, to: SandboxPort, attempt: ServeAgain): void {
  if (to.port === agentPort) {
    const path = pathOf(head);
    if (isInternalRoute(path)) return client.refuse(internalRoute(path), head);
  }
  const { context } = client;
  const found = context.directory.find(to.sandboxId);
  // The usual case, without a promise: the sandbox runs and a connection to the port is open.
  if (found !== undefined && !(found instanceof Promise) && found.state === 'running' && !attempt.fresh) {
    const admitted = admit(context, found, to, credentialsOf(head.fields));
    if ('status' in admitted) return client.refuse(admitted, head);
    const upstream = takeIdle(context, admitted, to.port, isSafeToRepeat(head));
    if (upstream !== undefined) {
      admitted.requests.take();
      return begin(client, head, to, { route: found, traffic: admitted, upstream }, attempt);
    }
  }
  void findWayAndBegin(client, head, to, found, attempt);
}

async function findWayAndBegin(
  client: Client,
  head: RequestHead,
  to: SandboxPort,
  found: Route | undefined | Promise<Route | undefined>,
  attempt: ServeAgain,
): Promise<void> {
  const { context } = client;
  const request = {
    credentials: credentialsOf(head.fields),
    repeatable: isSafeToRepeat(head),
    fresh: attempt.fresh,
    isProbe: to.port === agentPort && pathOf(head) === healthPath,
    signal: client.beginRouting(head),
  };
  let way: Way | Answer;
  try {
    way = await findWay(context, to, found, request);
  } catch (error) {
    way = answerToTrouble(context, to, error);
  }
  const sameHead = client.routedHead();
  if (sameHead === undefined) {
    if ('upstream' in way) giveUp(way);
  } else if ('status' in way) {
    client.refuse(way, sameHead);
  } else {
    begin(client, sameHead, to, way, attempt);
  }
}

/** What is needed of a request while its head is not at hand. */
type Asked = {
  readonly credentials: Credentials;
  readonly repeatable: boolean;
  readonly fresh: boolean;
  /** It asks whether the sandbox runs, and wants nothing of it: SDKs do so by themselves when a pause has cut a stream of theirs. */
  readonly isProbe: boolean;
  readonly signal: AbortSignal;
};

async function findWay(
  context: EdgeContext,
  to: SandboxPort,
  found: Route | undefined | Promise<Route | undefined>,
  asked: Asked,
): Promise<Way | Answer> {
  let route = await found;
  if (route === undefined) return sandboxNotFound(to);
  if (route.state !== 'running') {
    if (!route.ingress.autoResume || asked.isProbe) return sandboxPaused(to);
    const refusal = refusalOfWake(route, to, asked.credentials);
    if (refusal !== undefined) return refusal;
    const { requests } = context.teams.of(route.teamId);
    if (requests.full !== null) return noRoom(requests.full, to);
    requests.take();
    try {
      route = await wake(context, to.sandboxId, asked.signal);
    } finally {
      requests.give();
    }
  }
  const traffic = admit(context, route, to, asked.credentials);
  if ('status' in traffic) return traffic;
  traffic.requests.take();
  const idle = asked.fresh ? undefined : takeIdle(context, traffic, to.port, asked.repeatable);
  if (idle !== undefined) return { route, traffic, upstream: idle };
  const tls = route.ingress.httpsPorts.includes(to.port);
  try {
    return { route, traffic, upstream: await reachSandbox(context, traffic, to.port, tls, asked.signal) };
  } catch (error) {
    traffic.requests.give();
    // The dial's own answers; those of a wake mean something else.
    if (traffic.signal.aborted || (error instanceof AtollError && error.code === 'not_found')) return sandboxNotFound(to);
    if (error instanceof AtollError && error.code === 'unavailable' && !isPartLost(error)) return portNotOpen(to);
    throw error;
  }
}

async function wake(context: EdgeContext, sandboxId: string, signal: AbortSignal): Promise<Route> {
  using wait = new Wait([signal]);
  try {
    return await wait.for(context.directory.wake(sandboxId, wait.signal), context.limits.wakeTimeoutMs, () => {});
  } catch (cause) {
    if (!(cause instanceof AtollError) || cause.code !== 'deadline_exceeded') throw cause;
    throw new AtollError('conflict', 'The sandbox has been changing its state for too long; try again', { cause });
  }
}

/** The traffic of a running sandbox, or why the request may not join it. */
function admit(context: EdgeContext, route: Route, to: SandboxPort, credentials: Credentials): SandboxTraffic | Answer {
  const refusal = refusalOfTraffic(route, to, credentials);
  if (refusal !== undefined) return refusal;
  const traffic = trafficOf(context, route);
  const { full } = traffic.requests;
  return full === null ? traffic : noRoom(full, to);
}

function noRoom({ holder, max }: Share, to: SandboxPort): Answer {
  if (holder === 'sandbox') return tooManyConnections(to, max);
  if (holder === 'team') return tooManyOfTeam(to, max);
  return crowded(to);
}

function takeIdle(context: EdgeContext, traffic: SandboxTraffic, port: number, repeatable: boolean): Upstream | undefined {
  const { limits, clock } = context;
  const withinMs = port === agentPort ? limits.idleOwnUpstreamTimeoutMs : repeatable ? limits.idleUpstreamTimeoutMs : limits.freshUpstreamMs;
  return traffic.poolOf(port).take(clock.nowMs, withinMs);
}

function begin(client: Client, head: RequestHead, to: SandboxPort, way: Way, attempt: ServeAgain): void {
  const { maskRequestHost } = way.route.ingress;
  const masked = maskRequestHost !== null && to.port !== agentPort;
  const plan = {
    host: masked ? maskRequestHost.replaceAll('${PORT}', String(to.port)) : null,
    upgrade: upgradeFor(head, to.port),
  };
  new Exchange(client, { traffic: way.traffic, place: way.traffic.requests, port: to.port, plan }, way.upstream, head, attempt.again).begin(head);
}

/** Its client went away while the connection was made. */
function giveUp(way: Way): void {
  way.traffic.requests.give();
  way.upstream.terminate();
}

function answerToTrouble(context: EdgeContext, to: SandboxPort, error: unknown): Answer {
  const code = error instanceof AtollError ? error.code : 'internal';
  switch (code) {
    case 'not_found':
      return sandboxNotFound(to);
    case 'canceled':
      // The client is gone, or the sandbox ended meanwhile.
      return sandboxNotFound(to);
    case 'forbidden':
      return sandboxAnswer(403, messageOf(error), to);
    case 'conflict':
      return sandboxAnswer(409, messageOf(error), to);
    case 'rate_limited':
      return sandboxAnswer(429, messageOf(error), to);
    case 'deadline_exceeded':
      return sandboxAnswer(504, 'The sandbox took too long to answer the connection', to);
    case 'invalid':
      return sandboxAnswer(503, messageOf(error), to);
    default:
      context.log.error('sandbox unreachable', { sandboxId: to.sandboxId, port: to.port, error: messageOf(error) });
      return unreachable(to);
  }
}
