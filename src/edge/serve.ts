import { agentPort } from '../protocol/agent.ts';
import { type Destination, destinationOf, type RoutingHeaders } from '../protocol/hosts.ts';
import { plainAnswer } from './answer.ts';
import type { Client } from './client.ts';
import { hostOf } from './compose-request.ts';
import type { RequestHead } from './http/request-head.ts';
import { refusalOfOwn } from './own-servers.ts';
import { isPreflightForSandbox, preflightAnswer } from './preflight.ts';
import { serveApi } from './serve-api.ts';
import { serveSandbox } from './serve-sandbox.ts';

/** What a Host may hold: names, addresses, ports; nothing that another parser could take for a path or a second host. */
const hostPattern = /^[A-Za-z0-9._~%!$&'()*+;=:[\]-]*$/;

/** Sends the request with `head` to where it belongs, or refuses it. */
export function serve(client: Client, head: RequestHead): void {
  route(client, head, false);
}

/** The same over a new connection: the kept one was closed by its server when the request arrived. */
function serveAgain(client: Client, head: RequestHead): void {
  route(client, head, true);
}

function route(client: Client, head: RequestHead, fresh: boolean): void {
  const host = hostOf(head);
  const destination = host !== undefined && host === client.lastHost ? client.lastDestination : destinationFor(client, head, host);
  if (destination === null) return client.refuse(plainAnswer(400, 'The host is malformed'), head);
  const isOwn = destination.kind === 'api' || (destination.kind === 'sandbox' && destination.port === agentPort);
  const refusal = isOwn ? refusalOfOwn(head, client.context.limits) : undefined;
  if (refusal !== undefined) return client.refuse(refusal, head);
  switch (destination.kind) {
    case 'invalid':
      return client.refuse(plainAnswer(400, `The request can't be routed: ${destination.reason}`), head);
    case 'api':
      if (isPreflightForSandbox(head, host)) return client.refuse(preflightAnswer(head), head);
      return serveApi(client, head, { fresh, again: serveAgain });
    case 'sandbox':
      return serveSandbox(client, head, destination, { fresh, again: serveAgain });
  }
}

/** Null for a host that is none. */
function destinationFor(client: Client, head: RequestHead, host: string | undefined): Destination | null {
  if (host !== undefined && (host === '' || host.length > client.context.limits.hostBytesMax || !hostPattern.test(host))) return null;
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
