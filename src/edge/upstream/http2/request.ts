import type { OutgoingHttpHeaders } from 'node:http2';
import type { Field } from '../../../http1/head-bytes.ts';
import type { RequestHead } from '../../../http1/request-head.ts';
import { emptyHeaders, ofConnection } from '../../http2-fields.ts';

/** Methods whose requests the runtime resets if they announce a length, even 0, and have no body. */
const withoutLength: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);

/** Turns a request that the edge has written in HTTP/1.1 into HTTP/2 headers. Repeated fields become lists. */
export function headersOf(head: RequestHead, scheme: 'http' | 'https'): OutgoingHttpHeaders {
  const headers = Object.assign(emptyHeaders(), {
    ':method': head.method,
    ':path': head.target,
    ':scheme': scheme,
    ':authority': head.fields.text('host') ?? '',
    te: 'trailers',
  });
  addFields(headers, head.fields.all());
  if (head.framing.kind === 'none' && withoutLength.has(head.method.toUpperCase())) delete headers['content-length'];
  return headers;
}

/** Trailers as HTTP/2 has them. */
export const trailersFor = (fields: readonly Field[]): OutgoingHttpHeaders => addFields(emptyHeaders(), fields);

function addFields(headers: OutgoingHttpHeaders, fields: readonly Field[]): OutgoingHttpHeaders {
  for (const { name, value } of fields) {
    const lower = name.toLowerCase();
    if (ofConnection.has(lower)) continue;
    const before = headers[lower];
    headers[lower] = before === undefined ? value : [...[before].flat().map(String), value];
  }
  return headers;
}
