import { destinationOf, type RoutingHeaders } from '../protocol/hosts.ts';
import { plainAnswer } from './answer.ts';
import type { Client } from './client.ts';
import { hostOf } from './compose-request.ts';
import type { RequestHead } from './http/request-head.ts';
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
  if (host !== undefined && !hostPattern.test(host)) return client.refuse(plainAnswer(400, 'The host is malformed'), head);
  const destination = destinationOf(host, routingHeadersOf(head));
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

/** A header that comes twice becomes a list, which is neither an ID nor a port. */
function routingHeadersOf({ fields }: RequestHead): RoutingHeaders {
  return {
    e2bSandboxId: fields.list('e2b-sandbox-id'),
    e2bSandboxPort: fields.list('e2b-sandbox-port'),
    svcSandboxId: fields.list('svc-sandbox-id'),
    svcSandboxPort: fields.list('svc-sandbox-port'),
  };
}
