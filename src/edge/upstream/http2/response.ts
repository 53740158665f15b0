import type { IncomingHttpHeaders, IncomingHttpStatusHeader } from 'node:http2';
import { headBytes } from '../../../http1/head-bytes.ts';
import { fieldsOf } from '../../http2-fields.ts';

/** The frames tell the length: the body comes in chunks, and trailers may follow. */
const ofFraming: ReadonlySet<string> = new Set(['content-length', 'trailer']);
/** Responses that have no body, whatever their head says (RFC 9110 15.3.5, 15.4.5). */
const withoutBody: ReadonlySet<number> = new Set([204, 304]);
const crlf = Buffer.from('\r\n');

/**
 * The head of a response as HTTP/1.1, whose body follows in chunks unless it `endsAtOnce`. `toHead`: it answers HEAD,
 * and its length is that of another response. Undefined if it can't be a valid response: a service is a stranger.
 */
export function responseHeadBytes(
  headers: IncomingHttpHeaders & IncomingHttpStatusHeader,
  { endsAtOnce, toHead }: { endsAtOnce: boolean; toHead: boolean },
): Buffer | undefined {
  const { ':status': status } = headers;
  const fields = fieldsOf(headers)?.filter(({ name }) => !ofFraming.has(name) || (toHead && name === 'content-length'));
  if (fields === undefined || status === undefined || !Number.isInteger(status) || status < 200 || status > 999)
    return undefined;
  if (toHead || withoutBody.has(status)) return headBytes(`HTTP/1.1 ${status} -`, fields);
  const framing = endsAtOnce ? { name: 'Content-Length', value: '0' } : { name: 'Transfer-Encoding', value: 'chunked' };
  return headBytes(`HTTP/1.1 ${status} -`, [...fields, framing]);
}

/** A piece of a body, as a chunk. */
export function chunkBytes(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, crlf]);
}
