import { incomplete } from '../../../../../http1/fields.ts';
import { type Field, headBytes } from '../../../../../http1/head-bytes.ts';
import { headMayBeWhole } from '../../../../../http1/head-end.ts';
import { listOf } from '../../../../../http1/list.ts';
import { type RequestFraming, RequestHead } from '../../../../../http1/request-head.ts';
import { normalName, splitHostPort } from '../../../../../protocol/network/network.ts';
import { fieldsMax, headBytesMax } from './limits.ts';

/** A request on its way to the server that was decided about. */
export type RelayedRequest = {
  readonly method: string;
  /** In origin form, or `*`. */
  readonly target: string;
  readonly version: '1.0' | '1.1';
  /** The host in the request, in the form in which rules are compared; undefined if it is not a host name. */
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly fields: readonly Field[];
  readonly body: RequestFraming;
  /** The client asks to continue as a WebSocket. */
  readonly upgrade: boolean;
  /** Octets of the head. */
  readonly length: number;
};

/** Why a request is not passed on, and the host that it was meant for, if it says so. For the log only. */
type RefusedRequest = { readonly refused: string; readonly host: string | undefined };

/**
 * Parses the head of a request, or answers why it is not passed on. Refuses everything that a server could read in
 * another way, including an absolute target that disagrees with Host. CONNECT, and HTTP/2 without TLS, would carry
 * requests that nobody inspects. `searched`: how many octets an earlier call has found incomplete; they are not
 * searched again for the end of a head.
 */
export function readRequest(bytes: Buffer, searched = 0): RelayedRequest | 'incomplete' | RefusedRequest {
  if (bytes.length <= headBytesMax && !headMayBeWhole(bytes, searched)) return 'incomplete';
  const head = new RequestHead(fieldsMax);
  const length = head.parse(bytes, 0, bytes.length);
  if (length === incomplete && bytes.length <= headBytesMax) return 'incomplete';
  if (length === incomplete || length > headBytesMax) return { refused: 'a head that is too long', host: undefined };
  const host = head.fields.text('host');
  const understood = length < incomplete ? `no valid HTTP/1 request: ${head.fault.reason}` : understand(head, length);
  if (typeof understood === 'object') return understood;
  return { refused: understood, host: normalName(splitHostPort(host ?? '').host) };
}

/** The request of a valid head, or why it is not passed on. */
function understand(head: RequestHead, length: number): RelayedRequest | string {
  const host = head.fields.text('host');
  const absolute = /^http:\/\/([^/?#]*)(.*)$/i.exec(head.target);
  if (head.targetIsAbsolute && !absolute) return 'a target of another scheme';
  if (absolute && host !== undefined && absolute[1]?.toLowerCase() !== host.toLowerCase())
    return 'another Host than the target';
  const target = absolute ? (absolute[2]?.startsWith('/') ? absolute[2] : `/${absolute[2] ?? ''}`) : head.target;
  if (target === '*' && !head.methodIs('OPTIONS')) return 'a target of no known form';
  const authority = splitHostPort(absolute?.[1] ?? host ?? '');
  return {
    method: head.method,
    target,
    version: head.minorVersion === 1 ? '1.1' : '1.0',
    host: normalName(authority.host),
    port: authority.port,
    fields: head.fields.all(),
    body: head.framing,
    upgrade: asksForWebSocket(head),
    length,
  };
}

function asksForWebSocket({ fields, minorVersion }: RequestHead): boolean {
  if (minorVersion === 0 || !listOf(fields.list('connection')).includes('upgrade')) return false;
  return listOf(fields.list('upgrade')).join() === 'websocket';
}

/** Headers that concern the connection to the proxy, or ask for a protocol that the proxy does not inspect. */
const dropped = ['proxy-connection', 'proxy-authorization', 'http2-settings', 'upgrade', 'host'];

/** The client decides the framing of messages and the connection; a rule that sets these headers would break both. */
const framing = ['content-length', 'transfer-encoding', 'connection', 'upgrade', 'trailer', 'te'];

/**
 * Headers that say who a request comes from, which the platform's edge may be set to believe, and which host it is
 * for: by another host, the edge would pass it to another sandbox or to the API.
 */
function tellsThePlatform(name: string): boolean {
  return name === 'host' || name.startsWith('x-forwarded-') || name === 'forwarded' || name === 'x-real-ip';
}

/**
 * The head of a request as the server gets it: for the host that was decided about, with the rule's headers in place
 * of its own. `toPlatform`: leaves out what a sandbox says about its origin, and allows no other host.
 */
export function composeRequest(
  request: RelayedRequest,
  authority: string,
  headers: Record<string, string>,
  { toPlatform = false } = {},
): Buffer {
  const set = Object.entries(headers).filter(
    ([name]) => !framing.includes(name.toLowerCase()) && !(toPlatform && tellsThePlatform(name.toLowerCase())),
  );
  const replaced = new Set(set.map(([name]) => name.toLowerCase()));
  const kept = request.fields.flatMap(field => {
    const name = field.name.toLowerCase();
    if (replaced.has(name) || dropped.includes(name) || (toPlatform && tellsThePlatform(name))) return [];
    if (name !== 'connection') return [field];
    const options = listOf(field.value).filter(option => !dropped.includes(option) && !replaced.has(option));
    return options.length > 0 ? [{ name: field.name, value: options.join(', ') }] : [];
  });
  const host = replaced.has('host') ? [] : [{ name: 'Host', value: authority }];
  const upgrade = request.upgrade
    ? [
        { name: 'Connection', value: 'upgrade' },
        { name: 'Upgrade', value: 'websocket' },
      ]
    : [];
  const added = set.map(([name, value]) => ({ name, value }));
  return headBytes(`${request.method} ${request.target} HTTP/${request.version}`, [
    ...host,
    ...kept,
    ...upgrade,
    ...added,
  ]);
}
