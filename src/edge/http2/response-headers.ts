import type { OutgoingHttpHeaders } from 'node:http2';
import type { ResponseHead } from '../../http1/response-head.ts';

/** Fields of one HTTP/1.1 connection, which have no place in HTTP/2 (RFC 9113 8.2.2). */
const ofConnection = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']);

/** The headers of a response as HTTP/2 has them. */
export function http2Headers({ fields, status }: ResponseHead): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { ':status': status };
  for (let i = 0; i < fields.count; i++) {
    const name = fields.nameAt(i);
    if (ofConnection.has(name)) continue;
    const before = headers[name];
    const text = fields.textAt(i);
    if (name === 'set-cookie') headers[name] = [...(Array.isArray(before) ? before : []), text];
    else headers[name] = before === undefined ? text : `${before}, ${text}`;
  }
  return headers;
}
