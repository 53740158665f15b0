import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http2';
import { type Field, headBytes } from '../../http1/head-bytes.ts';
import { fieldsOf } from '../http2-fields.ts';

/** A request as HTTP/1.1: its head, and how its body must follow. */
export type RequestBytes = {
  readonly head: Buffer;
  /**
   * `length`: as it comes, that many bytes; `chunked`: in chunks; `none`: no body; `tunnel`: a WebSocket, as it comes
   * in both directions.
   */
  readonly body:
    | { readonly kind: 'none' | 'chunked' | 'tunnel' }
    | { readonly kind: 'length'; readonly length: number };
  /** A gRPC call: its server wants HTTP/2, and its client learns of failures behind the body. */
  readonly isGrpc: boolean;
  /** The client accepts trailers in the response (RFC 9110 10.1.4). */
  readonly takesTrailers: boolean;
};

const method = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const target = /^(?:\/[\x21-\x7e\x80-\xff]*|\*)$/;
const authority = /^[\x21-\x7e]+$/;
const grpc = /^application\/grpc(?:[+;]|$)/;
const webSocketKeyBytes = 16;

/** Writes an HTTP/2 request as HTTP/1.1; undefined if that is impossible. */
export function requestBytes(headers: IncomingHttpHeaders, endsAtOnce: boolean): RequestBytes | undefined {
  const { ':method': verb, ':path': path, ':authority': host = headers.host, ':protocol': protocol } = headers;
  if (typeof verb !== 'string' || typeof path !== 'string' || typeof host !== 'string') return undefined;
  if (!method.test(verb) || !target.test(path) || !authority.test(host)) return undefined;
  const fields = fieldsOf(headers);
  if (fields === undefined) return undefined;
  const all: Field[] = [{ name: 'Host', value: host }, ...fields];
  if (verb === 'CONNECT' || protocol !== undefined)
    return verb === 'CONNECT' && protocol === 'websocket' && !endsAtOnce ? webSocket(path, all) : undefined;
  const length = lengthOf(headers['content-length']);
  if (length === undefined || (endsAtOnce && length > 0)) return undefined;
  const body: RequestBytes['body'] =
    length >= 0 ? { kind: 'length', length } : { kind: endsAtOnce ? 'none' : 'chunked' };
  if (body.kind === 'chunked') all.push({ name: 'Transfer-Encoding', value: 'chunked' });
  const takesTrailers = headers['te'] === 'trailers';
  const isGrpc = takesTrailers && verb === 'POST' && grpc.test(headers['content-type'] ?? '');
  return { head: headBytes(`${verb} ${path} HTTP/1.1`, all), body, isGrpc, takesTrailers };
}

/** A WebSocket's opening request in HTTP/1.1. The parts that HTTP/2 lacks are made up (RFC 8441 5). */
function webSocket(path: string, fields: Field[]): RequestBytes | undefined {
  const made = ['sec-websocket-key', 'sec-websocket-accept', 'content-length'];
  if (fields.some(field => made.includes(field.name))) return undefined;
  const head = headBytes(`GET ${path} HTTP/1.1`, [
    ...fields,
    { name: 'Connection', value: 'Upgrade' },
    { name: 'Upgrade', value: 'websocket' },
    { name: 'Sec-WebSocket-Key', value: randomBytes(webSocketKeyBytes).toString('base64') },
  ]);
  return { head, body: { kind: 'tunnel' }, isGrpc: false, takesTrailers: false };
}

/** A content length, -1 if there is none, undefined if it is not a valid length. */
function lengthOf(text: string | string[] | undefined): number | undefined {
  if (text === undefined) return -1;
  return typeof text === 'string' && /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined;
}
