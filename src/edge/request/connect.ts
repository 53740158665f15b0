import { AtollError, messageOf } from '../../base/error.ts';
import { agentPort } from '../../protocol/agent.ts';
import { saysFull } from '../../protocol/no-room.ts';
import { isPartLost } from '../../protocol/part-lost.ts';
import { type Credentials, refusalOfTraffic, refusalOfTunnel, refusalOfWake } from './admit.ts';
import {
  type Answer,
  crowded,
  noRoomToWake,
  portNotOpen,
  type SandboxPort,
  sandboxAnswer,
  sandboxNotFound,
  sandboxPaused,
  tooManyConnections,
  unreachable,
  tooManyOfTeam,
} from '../answer/answer.ts';
import { trafficOf, type SandboxWay } from '../context.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { Route } from '../../protocol/directory.ts';
import { reachPort, reachSandbox } from './reach.ts';
import type { Protocol } from '../upstream/known-protocols.ts';
import type { SandboxTraffic } from '../upstream/sandbox-traffic.ts';
import type { Share } from '../../base/concurrency/share.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { Wait } from './wait.ts';

/** A connection for a request, counted in `traffic` until the request is over. */
export type Connected = { readonly route: Route; readonly traffic: SandboxTraffic; readonly upstream: Upstream };

/** The facts that decide how a request gets its connection. */
type Asked = {
  readonly credentials: Credentials;
  readonly repeatable: boolean;
  readonly fresh: boolean;
  /**
   * The request asks whether the sandbox runs and wants nothing from one that does not: SDKs do so by themselves after
   * a pause has cut a stream, and the dashboard does so while it shows a sandbox.
   */
  readonly isProbe: boolean;
  /** The request wants the connection itself, without a request on it. */
  readonly isTunnel: boolean;
  /** The protocol that the service must speak; undefined: whichever it speaks. */
  readonly protocol: Protocol | undefined;
  /** The request has a body. */
  readonly hasBody: boolean;
  readonly signal: AbortSignal;
};

/**
 * A connection for a request, or the reason why there is none. Resumes the sandbox where that is allowed, and waits
 * while it is being moved. The order of the checks is part of the contract.
 */
export async function connect(
  way: SandboxWay,
  to: SandboxPort,
  found: Route | undefined | Promise<Route | undefined>,
  asked: Asked,
): Promise<Connected | Answer> {
  let route = await found;
  if (route === undefined) return sandboxNotFound(to);
  if (route.state !== 'running') {
    const isMoving = route.state === 'moving';
    if (!isMoving && (!route.ingress.autoResume || asked.isProbe)) return sandboxPaused(to);
    const refusal = (asked.isTunnel ? refusalOfTunnel : refusalOfWake)(route, to, asked.credentials);
    if (refusal !== undefined) return refusal;
    const { requests } = way.teams.of(route.teamId);
    if (requests.full !== null) return noRoom(requests.full, to);
    requests.take();
    try {
      route = await wake(way, to.sandboxId, asked.signal);
    } finally {
      requests.give();
    }
  }
  const traffic = admit(way, route, to, asked);
  if ('status' in traffic) return traffic;
  traffic.requests.take();
  const idle = asked.fresh ? undefined : takeIdle(way, traffic, to.port, asked);
  if (idle !== undefined) return { route, traffic, upstream: idle };
  const tls = route.ingress.httpsPorts.includes(to.port);
  const protocol = asked.protocol ?? traffic.protocolOf(to.port);
  try {
    const upstream = asked.isTunnel
      ? await reachPort(way, traffic, to.port, asked.signal)
      : await reachSandbox(way, traffic, to.port, { tls, protocol, hasBody: asked.hasBody }, asked.signal);
    return { route, traffic, upstream };
  } catch (error) {
    traffic.requests.give();
    // Only errors of the dial itself; those of a wake mean something else.
    if (traffic.signal.aborted || (error instanceof AtollError && error.code === 'not_found'))
      return sandboxNotFound(to);
    if (error instanceof AtollError && error.code === 'unavailable' && !isPartLost(error)) return portNotOpen(to);
    throw error;
  }
}

async function wake(
  { directory, limits }: Pick<SandboxWay, 'directory' | 'limits'>,
  sandboxId: string,
  signal: AbortSignal,
): Promise<Route> {
  using wait = new Wait([signal]);
  try {
    return await wait.for(directory.wake(sandboxId, wait.signal), limits.wakeTimeoutMs, () => {});
  } catch (cause) {
    if (!(cause instanceof AtollError) || cause.code !== 'deadline_exceeded') throw cause;
    throw new AtollError('conflict', 'The sandbox has been changing its state for too long; try again', { cause });
  }
}

/** The traffic of a running sandbox, or why the request may not join it. */
export function admit(
  way: SandboxWay,
  route: Route,
  to: SandboxPort,
  { credentials, isTunnel }: Pick<Asked, 'credentials' | 'isTunnel'>,
): SandboxTraffic | Answer {
  const refusal = (isTunnel ? refusalOfTunnel : refusalOfTraffic)(route, to, credentials);
  if (refusal !== undefined) return refusal;
  const traffic = trafficOf(way, route);
  const { full } = traffic.requests;
  return full === null ? traffic : noRoom(full, to);
}

function noRoom({ holder, max }: Share, to: SandboxPort): Answer {
  if (holder === 'sandbox') return tooManyConnections(to, max);
  if (holder === 'team') return tooManyOfTeam(to, max);
  return crowded(to);
}

/** An open connection to a port that nobody uses. */
export function takeIdle(
  { limits, clock }: Pick<SandboxWay, 'limits' | 'clock'>,
  traffic: SandboxTraffic,
  port: number,
  { repeatable, protocol }: Pick<Asked, 'repeatable' | 'protocol'>,
): Upstream | undefined {
  const withinMs =
    port === agentPort
      ? limits.idleOwnUpstreamTimeoutMs
      : repeatable
        ? limits.idleUpstreamTimeoutMs
        : limits.freshUpstreamMs;
  const isHttp2 = (protocol ?? traffic.protocolOf(port)) === 'h2';
  return traffic.poolOf(port, isHttp2).take(clock.nowMs, withinMs);
}

/** The client went away while the connection was being made. */
export function giveUp(connected: Connected): void {
  connected.traffic.requests.give();
  connected.upstream.terminate();
}

/** What the client is told if no connection could be made. */
export function answerToTrouble(log: Log, to: SandboxPort, error: unknown): Answer {
  if (saysFull(error)) {
    log.warn('no room to wake a sandbox', { sandboxId: to.sandboxId, port: to.port, error: error.message });
    return noRoomToWake(to, error.retryAfterSeconds);
  }
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
      log.error('sandbox unreachable', { sandboxId: to.sandboxId, port: to.port, error: messageOf(error) });
      return unreachable(to);
  }
}
