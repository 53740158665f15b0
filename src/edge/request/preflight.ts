import { firstLabelOf } from '../../protocol/network/hosts.ts';
import type { Answer } from '../answer/answer.ts';
import type { RequestHead } from '../../http1/request-head.ts';

/** The first label of the host that all sandboxes share. */
const sharedLabel = 'sandbox';

/**
 * True for a browser's preflight of a request to a sandbox, on a host that names no sandbox. Browsers can't add the
 * routing headers to a preflight, so no sandbox can be asked. It goes to the shared host, or announces a routing
 * header.
 */
export function isPreflightForSandbox(head: RequestHead, host: string | undefined): boolean {
  const { fields } = head;
  if (!head.methodIs('OPTIONS') || !fields.has('origin') || !fields.has('access-control-request-method')) return false;
  if (host !== undefined && firstLabelOf(host) === sharedLabel) return true;
  return /(?:^|[\s,])(?:e2b|svc)-sandbox-(?:id|port)(?:$|[\s,])/i.test(
    fields.list('access-control-request-headers') ?? '',
  );
}

/** Permits what was asked for; the sandbox itself decides about the request that follows. */
export function preflightAnswer({ fields }: RequestHead): Answer {
  return {
    status: 204,
    body: null,
    headers: {
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
      'Access-Control-Allow-Headers': fields.list('access-control-request-headers') ?? '*',
      'Access-Control-Max-Age': '7200',
      Vary: 'Access-Control-Request-Headers',
    },
  };
}
