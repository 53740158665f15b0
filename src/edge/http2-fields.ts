import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2';
import type { Field } from '../http1/head-bytes.ts';

// What `node:http2` gives of headers, as fields of HTTP/1.1: nothing is taken on trust, whoever has sent it. And what
// they are given to it in.

const name = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
// What an HTTP/1.1 line may hold: a line break in a value would begin another header there.
const value = /^[\t\x20-\x7e\x80-\xff]*$/;
/**
 * Fields of one HTTP/1.1 connection: they have no meaning in HTTP/2 and must not get one on the way (RFC 9113 8.2.2).
 */
export const ofConnection: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'te',
  'host',
]);
/**
 * Fields that frame, route or unlock a message, or speak for an origin: behind a body, where they come too late for
 * whoever has decided by them, they are not passed on (RFC 9110 6.5.1).
 */
const notBehindBody: ReadonlySet<string> = new Set([
  ...['content-length', 'content-type', 'content-encoding', 'content-range', 'expect', 'trailer', 'authorization'],
  ...['cookie', 'set-cookie', 'clear-site-data', 'strict-transport-security', 'alt-svc', 'x-access-token', 'forwarded'],
]);
const reservedPrefix = /^(?:x-atoll-|x-forwarded-|e2b-|svc-)/;

/** The fields, without those of a connection. Undefined where one can't be one of HTTP/1.1. */
export function fieldsOf(headers: IncomingHttpHeaders): Field[] | undefined {
  const fields: Field[] = [];
  for (const [field, content] of Object.entries(headers)) {
    if (field.startsWith(':') || ofConnection.has(field) || content === undefined) continue;
    // Cookies may come in crumbs, which are one list again in HTTP/1.1 (RFC 9113 8.2.3).
    const values = field === 'cookie' ? [[content].flat().join('; ')] : [content].flat();
    if (!name.test(field) || !values.every(text => value.test(text))) return undefined;
    for (const text of values) fields.push({ name: field, value: text });
  }
  return fields;
}

/** The fields that came behind a body, without those that may not. Undefined where they are none (RFC 9113 8.1). */
export function trailersOf(headers: IncomingHttpHeaders): Field[] | undefined {
  if (Object.keys(headers).some(field => field.startsWith(':'))) return undefined;
  return fieldsOf(headers)?.filter(field => mayBeBehindBody(field.name));
}

/** Whether a field (its name in lower case) is passed on that comes behind a body. */
export function mayBeBehindBody(field: string): boolean {
  return !notBehindBody.has(field) && !reservedPrefix.test(field);
}

/** Headers for `node:http2`, in which nothing is yet: a field may have the name of what objects inherit. */
export function emptyHeaders(): OutgoingHttpHeaders {
  return Object.create(null) as OutgoingHttpHeaders;
}
