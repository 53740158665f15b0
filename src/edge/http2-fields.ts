import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2';
import type { Field } from '../http1/head-bytes.ts';

// Converts headers from `node:http2` to HTTP/1.1 fields, trusting no sender, and makes the objects in which headers are
// handed to it.

const name = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
// What an HTTP/1.1 line may hold: a line break in a value would begin another header.
const value = /^[\t\x20-\x7e\x80-\xff]*$/;
/**
 * Fields that concern one HTTP/1.1 connection: they mean nothing in HTTP/2 and must not acquire a meaning on the way
 * (RFC 9113 8.2.2).
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
 * Fields that frame, route or unlock a message, or speak for an origin. Behind a body they come too late for whoever
 * has already decided by them, so they are not passed on as trailers (RFC 9110 6.5.1).
 */
const notBehindBody: ReadonlySet<string> = new Set([
  ...['content-length', 'content-type', 'content-encoding', 'content-range', 'expect', 'trailer', 'authorization'],
  ...['cookie', 'set-cookie', 'clear-site-data', 'strict-transport-security', 'alt-svc', 'x-access-token', 'forwarded'],
]);
const reservedPrefix = /^(?:x-atoll-|x-forwarded-|e2b-|svc-)/;

/** The fields, without those that concern one connection. Undefined if one can't be an HTTP/1.1 field. */
export function fieldsOf(headers: IncomingHttpHeaders): Field[] | undefined {
  const fields: Field[] = [];
  for (const [field, content] of Object.entries(headers)) {
    if (field.startsWith(':') || ofConnection.has(field) || content === undefined) continue;
    // HTTP/2 may split cookies into crumbs; HTTP/1.1 has them as one list (RFC 9113 8.2.3).
    const values = field === 'cookie' ? [[content].flat().join('; ')] : [content].flat();
    if (!name.test(field) || !values.every(text => value.test(text))) return undefined;
    for (const text of values) fields.push({ name: field, value: text });
  }
  return fields;
}

/**
 * The fields behind a body, without those that may not be there. Undefined if they are not valid trailers (RFC 9113
 * 8.1).
 */
export function trailersOf(headers: IncomingHttpHeaders): Field[] | undefined {
  if (Object.keys(headers).some(field => field.startsWith(':'))) return undefined;
  return fieldsOf(headers)?.filter(field => mayBeBehindBody(field.name));
}

/** Whether a field behind a body is passed on; its name is in lower case. */
export function mayBeBehindBody(field: string): boolean {
  return !notBehindBody.has(field) && !reservedPrefix.test(field);
}

/**
 * An empty header object for `node:http2`. It inherits nothing: a field may be called like a member that objects
 * inherit.
 */
export function emptyHeaders(): OutgoingHttpHeaders {
  return Object.create(null) as OutgoingHttpHeaders;
}
