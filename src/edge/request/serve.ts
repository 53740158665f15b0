import { agentPort } from '../../protocol/agent.ts';
import { type Destination, destinationOf, type RoutingHeaders } from '../../protocol/network/hosts.ts';
import { plainAnswer } from '../answer/answer.ts';
import type { Client } from '../connection/client.ts';
import type { Serve } from '../connection/client-connection.ts';
import type { ApiWay, SandboxWay } from '../context.ts';
import type { ServeAgain } from '../exchange/target.ts';
import { hostOf, pathOf } from '../exchange/compose-request.ts';
import type { RequestHead } from '../../http1/request-head.ts';
import { refusalOfOwn } from './own-servers.ts';
import { isPreflightForSandbox, preflightAnswer } from './preflight.ts';
import { serveApi } from './serve-api.ts';
import { carriesSession, sessionAnswer } from './session.ts';
import { serveSandbox } from './serve-sandbox.ts';
import { sandboxOfSignedFile } from './signed-file.ts';

/**
 * Characters of a Host: names, addresses, ports; nothing that another parser could take for a path or a second host.
 */
const hostPattern = /^[A-Za-z0-9._~%!$&'()*+;=:[\]-]*$/;

const connectPath = /^\/(?:v2\/)?sandboxes\/([a-z0-9]+)\/connect$/;

type Ways = ApiWay & SandboxWay;
type SandboxDestination = Extract<Destination, { kind: 'sandbox' }>;

/** The function that sends requests to their destination, or refuses them. */
export function serveBy(ways: Ways): Serve {
  // Over a new connection: the server was closing the kept one when the request arrived.
  const serveAgain: Serve = (client, head) => route(ways, client, head, { fresh: true, again: serveAgain });
  return (client, head) => route(ways, client, head, { fresh: false, again: serveAgain });
}

function route(ways: Ways, client: Client, head: RequestHead, attempt: ServeAgain): void {
  const host = hostOf(head);
  const destination =
    host !== undefined && host === client.lastHost ? client.lastDestination : destinationFor(client, head, host);
  if (destination === null) return client.refuse(plainAnswer(400, 'The host is malformed'), head);
  const isOwn = destination.kind === 'api' || (destination.kind === 'sandbox' && destination.port === agentPort);
  const refusal = isOwn ? refusalOfOwn(head, ways.limits) : undefined;
  if (refusal !== undefined) return client.refuse(refusal, head);
  switch (destination.kind) {
    case 'invalid':
      return client.refuse(plainAnswer(400, `The request can't be routed: ${destination.reason}`), head);
    case 'api':
      if (isPreflightForSandbox(head, host)) return client.refuse(preflightAnswer(head), head);
      return serveApiOrFile(ways, client, head, attempt);
    case 'sandbox':
      if (isConnectByHeaders(head, destination)) return serveApi(ways, client, head, attempt);
      if (carriesSession(head)) return client.refuse(sessionAnswer, head);
      return serveSandbox(ways, client, head, destination, attempt);
  }
}

/**
 * Python's clients of 2.15 to 2.23 send the headers of the sandbox with the call that connects to it, which is the
 * API's. The agent has no such path.
 */
function isConnectByHeaders(head: RequestHead, { sandboxId, port, by }: SandboxDestination): boolean {
  return by === 'headers' && port === agentPort && connectPath.exec(pathOf(head))?.[1] === sandboxId;
}

function serveApiOrFile(ways: Ways, client: Client, head: RequestHead, attempt: ServeAgain): void {
  const signed = sandboxOfSignedFile(ways, client, head);
  if (signed === undefined) return serveApi(ways, client, head, attempt);
  if (carriesSession(head)) return client.refuse(sessionAnswer, head);
  serveSandbox(ways, client, head, signed, attempt);
}

/** Null if the host is invalid. */
function destinationFor(client: Client, head: RequestHead, host: string | undefined): Destination | null {
  if (
    host !== undefined &&
    (host === '' || host.length > client.context.limits.hostBytesMax || !hostPattern.test(host))
  )
    return null;
  const destination = destinationOf(host, routingHeadersOf(head));
  // Only then do the headers not matter.
  const byHost = destination.kind === 'sandbox' && destination.by === 'host';
  client.lastHost = byHost && host !== undefined ? host : null;
  client.lastDestination = destination;
  return destination;
}

/** A header that comes twice becomes a list, which is neither an ID nor a port. */
function routingHeadersOf({ fields }: RequestHead): RoutingHeaders {
  return {
    e2bSandboxId: fields.list('e2b-sandbox-id'),
    e2bSandboxPort: fields.list('e2b-sandbox-port'),
    svcSandboxId: fields.list('svc-sandbox-id'),
    svcSandboxPort: fields.list('svc-sandbox-port'),
  };
}
