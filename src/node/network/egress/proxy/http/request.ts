import { normalName, splitHostPort } from '../../../../../protocol/network.ts';
import type { BodyKind } from './body.ts';
import { listOf, valuesOf, writeHead, type Field, type Head } from './head.ts';

export type RequestHead = {
  method: string;
  /** In origin form, or `*`. */
  target: string;
  version: '1.0' | '1.1';
  /** The host that is asked for, in the form that rules are compared in; undefined where it is no host name. */
  host: string | undefined;
  port: number | undefined;
  fields: Field[];
  body: { kind: BodyKind; length: number };
  /** The client asks to go on as a WebSocket. */
  upgrade: boolean;
  /** Octets of the head. */
  length: number;
};

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const visible = /^[\x21-\x7e\x80-\xff]+$/;

/**
 * Understands a request's head, or answers why it is not passed on. What a server could read in another way is refused:
 * one Host, which agrees with an absolute target; one way to tell the body's length. CONNECT, and HTTP/2 without TLS, would
 * carry requests that nobody looks at.
 */
export function readRequest(head: Head): RequestHead | { refused: string } {
  const [method = '', rawTarget = '', protocol = '', ...rest] = head.startLine.split(' ');
  const version = protocol === 'HTTP/1.1' ? '1.1' : protocol === 'HTTP/1.0' ? '1.0' : undefined;
  if (rest.length > 0 || !token.test(method) || !visible.test(rawTarget)) return { refused: 'no HTTP request' };
  if (!version) return { refused: `${protocol} without TLS` };
  if (method === 'CONNECT') return { refused: 'CONNECT' };
  const hosts = valuesOf(head.fields, 'host');
  if (hosts.length > 1) return { refused: 'more than one Host' };
  const absolute = /^http:\/\/([^/?#]*)(.*)$/i.exec(rawTarget);
  if (absolute && hosts[0] !== undefined && absolute[1]?.toLowerCase() !== hosts[0].toLowerCase()) return { refused: 'another Host than the target' };
  const target = absolute ? (absolute[2]?.startsWith('/') ? absolute[2] : `/${absolute[2] ?? ''}`) : rawTarget;
  if (!target.startsWith('/') && !(target === '*' && method === 'OPTIONS')) return { refused: 'a target of no known form' };
  const body = bodyOf(head.fields, version);
  if (!body) return { refused: 'a body of ambiguous length' };
  const authority = splitHostPort(absolute?.[1] ?? hosts[0] ?? '');
  return {
    method,
    target,
    version,
    host: normalName(authority.host),
    port: authority.port,
    fields: head.fields,
    body,
    upgrade: version === '1.1' && listOf(head.fields, 'connection').includes('upgrade') && listOf(head.fields, 'upgrade').join() === 'websocket',
    length: head.length,
  };
}

/** RFC 9112 6.3, for requests. */
function bodyOf(fields: Field[], version: string): RequestHead['body'] | undefined {
  const codings = valuesOf(fields, 'transfer-encoding');
  const lengths = valuesOf(fields, 'content-length');
  if (codings.length > 0) {
    const plain = codings.length === 1 && codings[0]?.toLowerCase() === 'chunked' && version === '1.1' && lengths.length === 0;
    return plain ? { kind: 'chunked', length: 0 } : undefined;
  }
  if (lengths.length === 0) return { kind: 'none', length: 0 };
  const [length = ''] = lengths;
  if (lengths.length > 1 || !/^\d{1,15}$/.test(length)) return undefined;
  return { kind: 'length', length: Number(length) };
}

/** Headers that concern the connection to us, or ask for a protocol that we do not look into. */
const dropped = ['proxy-connection', 'proxy-authorization', 'http2-settings', 'upgrade', 'host'];

/** What frames a message or the connection is the client's to say; a rule that sets it would break both apart. */
const framing = ['content-length', 'transfer-encoding', 'connection', 'upgrade', 'trailer', 'te'];

/** What tells who a request comes from: the platform's edge may be told to believe it, of those before it. */
function tellsOrigin(name: string): boolean {
  return name.startsWith('x-forwarded-') || name === 'forwarded' || name === 'x-real-ip';
}

/** The request as it goes to the server: to the host that was decided about, with the rule's headers in place of its own. `toPlatform`: without what a sandbox says of where it comes from. */
export function composeRequest(request: RequestHead, authority: string, headers: Record<string, string>, { toPlatform = false } = {}): Buffer {
  const set = Object.entries(headers).filter(([name]) => !framing.includes(name.toLowerCase()) && !(toPlatform && tellsOrigin(name.toLowerCase())));
  const replaced = new Set(set.map(([name]) => name.toLowerCase()));
  const kept = request.fields.flatMap(field => {
    const name = field.name.toLowerCase();
    if (replaced.has(name) || dropped.includes(name) || (toPlatform && tellsOrigin(name))) return [];
    if (name !== 'connection') return [field];
    const options = listOf([field], 'connection').filter(option => !dropped.includes(option) && !replaced.has(option));
    return options.length > 0 ? [{ name: field.name, value: options.join(', ') }] : [];
  });
  const host = replaced.has('host') ? [] : [{ name: 'Host', value: authority }];
  const upgrade = request.upgrade ? [{ name: 'Connection', value: 'upgrade' }, { name: 'Upgrade', value: 'websocket' }] : [];
  const added = set.map(([name, value]) => ({ name, value }));
  return writeHead(`${request.method} ${request.target} HTTP/${request.version}`, [...host, ...kept, ...upgrade, ...added]);
}
