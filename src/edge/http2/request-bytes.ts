import type { IncomingHttpHeaders } from 'node:http2';
import { type Field, headBytes } from '../../http1/head-bytes.ts';

/** A request as HTTP/1.1: its head, and how its body is to follow. */
export type RequestBytes = {
  readonly head: Buffer;
  /** `length`: as it comes, that many bytes; `chunked`: in chunks; `none`. */
  readonly body: { readonly kind: 'none' | 'chunked' } | { readonly kind: 'length'; readonly length: number };
};

const method = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const name = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
// What an HTTP/1.1 line may hold: a line break in a value would begin another header there.
const value = /^[\t\x20-\x7e\x80-\xff]*$/;
const target = /^(?:\/[\x21-\x7e\x80-\xff]*|\*)$/;
const authority = /^[\x21-\x7e]+$/;
/**
 * Fields of one HTTP/1.1 connection: they have no meaning in HTTP/2 and must not get one on the way (RFC 9113 8.2.2).
 */
const ofConnection = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'te',
  'host',
]);

/** Writes a request of HTTP/2 as one of HTTP/1.1; undefined if it can't be one. */
export function requestBytes(headers: IncomingHttpHeaders, endsAtOnce: boolean): RequestBytes | undefined {
  const { ':method': verb, ':path': path, ':authority': host = headers.host } = headers;
  if (typeof verb !== 'string' || typeof path !== 'string' || typeof host !== 'string') return undefined;
  if (!method.test(verb) || !target.test(path) || !authority.test(host) || verb === 'CONNECT') return undefined;
  const fields: Field[] = [{ name: 'Host', value: host }];
  for (const [field, content] of Object.entries(headers)) {
    if (field.startsWith(':') || ofConnection.has(field) || content === undefined) continue;
    // Cookies may come in crumbs, which are one list again in HTTP/1.1 (RFC 9113 8.2.3).
    const values = field === 'cookie' ? [[content].flat().join('; ')] : [content].flat();
    if (!name.test(field) || !values.every(text => value.test(text))) return undefined;
    for (const text of values) fields.push({ name: field, value: text });
  }
  const length = lengthOf(headers['content-length']);
  if (length === undefined || (endsAtOnce && length > 0)) return undefined;
  const body: RequestBytes['body'] =
    length >= 0 ? { kind: 'length', length } : { kind: endsAtOnce ? 'none' : 'chunked' };
  if (body.kind === 'chunked') fields.push({ name: 'Transfer-Encoding', value: 'chunked' });
  return { head: headBytes(`${verb} ${path} HTTP/1.1`, fields), body };
}

/** A content length, -1 where there is none, undefined for what is no length. */
function lengthOf(text: string | string[] | undefined): number | undefined {
  if (text === undefined) return -1;
  return typeof text === 'string' && /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined;
}
