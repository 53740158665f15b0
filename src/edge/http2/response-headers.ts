import type { OutgoingHttpHeaders } from 'node:http2';
import type { Field } from '../../http1/head-bytes.ts';
import { emptyHeaders, mayBeBehindBody } from '../http2-fields.ts';
import type { ResponseHead } from '../../http1/response-head.ts';

/**
 * Fields without a place in HTTP/2: those of one HTTP/1.1 connection (RFC 9113 8.2.2), and the answer to a WebSocket's
 * key (RFC 8441 5).
 */
const ofConnection = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'sec-websocket-accept',
]);

/**
 * The headers of a response for HTTP/2. It has no protocol switch: there the stream itself becomes the other protocol.
 */
export function http2Headers({ fields, status }: ResponseHead): OutgoingHttpHeaders {
  const headers = emptyHeaders();
  headers[':status'] = status === 101 ? 200 : status;
  for (let i = 0; i < fields.count; i++) add(headers, fields.nameAt(i), fields.textAt(i));
  return headers;
}

/** The trailers as HTTP/2 has them. */
export function http2Trailers(fields: readonly Field[]): OutgoingHttpHeaders {
  const headers = emptyHeaders();
  for (const { name, value } of fields)
    if (mayBeBehindBody(name.toLowerCase())) add(headers, name.toLowerCase(), value);
  return headers;
}

function add(headers: OutgoingHttpHeaders, name: string, text: string): void {
  if (ofConnection.has(name)) return;
  const before = headers[name];
  if (name === 'set-cookie') headers[name] = [...(Array.isArray(before) ? before : []), text];
  else headers[name] = before === undefined ? text : `${before}, ${text}`;
}
