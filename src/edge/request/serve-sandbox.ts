import { agentPort, fileMetadataHeader, onlyRunningHeader } from '../../protocol/agent.ts';
import type { Destination } from '../../protocol/network/hosts.ts';
import { credentialsOf } from './admit.ts';
import { countWaiting } from './count-waiting.ts';
import { admit, answerToTrouble, connect, giveUp, takeIdle, type Connected } from './connect.ts';
import { type Answer, internalRoute } from '../answer/answer.ts';
import type { Client } from '../connection/client.ts';
import { pathOf } from '../exchange/compose-request.ts';
import type { SandboxWay } from '../context.ts';
import type { Route } from '../../protocol/directory.ts';
import { Exchange } from '../exchange/exchange.ts';
import { isSafeToRepeat, type ServeAgain } from '../exchange/target.ts';
import type { KeptRequestHead, RequestHead } from '../../http1/request-head.ts';
import type { Protocol } from '../upstream/known-protocols.ts';
import { isInternalRoute } from './internal-routes.ts';
import { serveTunnel, tunnelAsked } from './serve-tunnel.ts';
import { upgradeFor } from './upgrade.ts';

/** The agent's health route. A sandbox that does not run does not answer it, and asking for it wakes none. */
const healthPath = '/health';

/** A port of a sandbox, and what named it: the host, headers, or the signature of a file's URL. */
export type NamedPort = Omit<Extract<Destination, { kind: 'sandbox' }>, 'by'> & {
  readonly by: 'host' | 'headers' | 'signature';
};

/**
 * Sends a request into a sandbox. The order of the checks is part of the contract: internal route, look-up or resume,
 * traffic token, connection limit, connection.
 */
export function serveSandbox(
  way: SandboxWay,
  client: Client,
  head: RequestHead,
  to: NamedPort,
  attempt: ServeAgain,
): void {
  if (to.port === agentPort) {
    const path = pathOf(head);
    if (isInternalRoute(path)) return client.refuse(internalRoute(path), head);
    const tunnel = tunnelAsked(head, path, to);
    if (tunnel !== undefined && 'status' in tunnel) return client.refuse(tunnel, head);
    if (tunnel !== undefined) return void serveTunnel(way, client, head.keep(), tunnel);
  }
  const found = way.directory.find(to.sandboxId);
  // The usual case, without a promise: the sandbox runs, and a connection to the port is open.
  if (found !== undefined && !(found instanceof Promise) && found.state === 'running' && !attempt.fresh) {
    const admitted = admit(way, found, to, { credentials: credentialsOf(head.fields), isTunnel: false });
    if ('status' in admitted) return client.refuse(admitted, head);
    const upstream = takeIdle(way, admitted, to.port, {
      repeatable: isSafeToRepeat(head),
      protocol: protocolFor(client, head, to),
    });
    if (upstream !== undefined) {
      admitted.requests.take();
      return begin(way, client, head, to, { route: found, traffic: admitted, upstream }, attempt);
    }
  }
  void connectAndBegin(way, client, head.keep(), to, found, attempt);
}

/**
 * The protocol that the service must speak. The agent is always asked in HTTP/1.1, and so is any service asked to
 * switch protocols; gRPC calls go to a sandbox's own services in HTTP/2.
 */
function protocolFor(client: Client, head: RequestHead, { port }: NamedPort): Protocol | undefined {
  if (port === agentPort || upgradeFor(head, port)) return 'http/1.1';
  return client.isGrpc ? 'h2' : undefined;
}

async function connectAndBegin(
  way: SandboxWay,
  client: Client,
  head: KeptRequestHead,
  to: NamedPort,
  found: Route | undefined | Promise<Route | undefined>,
  attempt: ServeAgain,
): Promise<void> {
  const request = {
    credentials: credentialsOf(head.fields),
    repeatable: isSafeToRepeat(head),
    fresh: attempt.fresh,
    isProbe:
      to.port === agentPort && (pathOf(head) === healthPath || head.fields.text(onlyRunningHeader) !== undefined),
    isTunnel: false,
    protocol: protocolFor(client, head, to),
    hasBody: head.framing.kind !== 'none',
    signal: client.beginRouting(),
  };
  let connected: Connected | Answer;
  try {
    connected = await connect(way, to, found, request);
  } catch (error) {
    connected = answerToTrouble(way.log, to, error);
  }
  if (!client.isRouting) {
    if ('upstream' in connected) giveUp(connected);
  } else if ('status' in connected) {
    client.refuse(connected, head);
  } else {
    begin(way, client, head, to, connected, attempt);
  }
}

function begin(
  { directory }: Pick<SandboxWay, 'directory'>,
  client: Client,
  head: RequestHead,
  to: NamedPort,
  connected: Connected,
  attempt: ServeAgain,
): void {
  const { maskRequestHost } = connected.route.ingress;
  const masked = maskRequestHost !== null && to.port !== agentPort;
  const plan = {
    host: masked ? maskRequestHost.replaceAll('${PORT}', String(to.port)) : null,
    upgrade: upgradeFor(head, to.port),
    // The agent's runtime would join the values of all lines into one.
    ...(to.port === agentPort && head.methodIs('POST') && { firstOf: fileMetadataHeader }),
  };
  countWaiting(client, connected.upstream, connected.traffic.teamId);
  new Exchange(
    client,
    {
      traffic: connected.traffic,
      directory,
      place: connected.traffic.requests,
      port: to.port,
      plan,
      isForeign: to.by !== 'host',
      // No page can make a browser send the routing headers with a request whose answer it displays; but any page can
      // link to a URL.
      isInert: to.by === 'signature',
    },
    connected.upstream,
    head,
    attempt.again,
  ).begin(head);
}
