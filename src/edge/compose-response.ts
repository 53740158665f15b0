import { headerId } from './http/known-headers.ts';
import { nominatedFields } from './nominated-fields.ts';
import type { ResponseHead } from './http/response-head.ts';

const closeEnd = Buffer.from('Connection: close\r\n\r\n');
const end = Buffer.from('\r\n');
/** Position of the minor version in `HTTP/1.1`. */
const minorVersionAt = 7;
const digitOne = 0x31;

/** True where the head can't pass as it is. */
export function needsRewrite(head: ResponseHead, close: boolean): boolean {
  const { fields } = head;
  return (
    close ||
    head.minorVersion === 0 ||
    fields.has('connection') ||
    fields.has('keep-alive') ||
    fields.has('proxy-connection') ||
    (fields.has('upgrade') && head.status !== 426)
  );
}

/**
 * Writes the head as the client gets it to the start of `out`, which must have room, and answers its length: without the
 * fields that speak of the connection to the upstream, as HTTP/1.1, and with `Connection: close` where `close` is set.
 */
export function composeResponse(out: Buffer, head: ResponseHead, close: boolean): number {
  const { bytes, fields } = head;
  const nominated = nominatedFields(fields);
  let length = bytes.copy(out, 0, head.start, head.fieldsStart);
  out[minorVersionAt] = digitOne;
  for (let i = 0; i < fields.count; i++) {
    const id = fields.ids[i] as number;
    const drop =
      id === headerId.connection ||
      id === headerId['keep-alive'] ||
      id === headerId['proxy-connection'] ||
      (id === headerId.upgrade && head.status !== 426) ||
      (nominated !== null && nominated.has(fields.nameAt(i)));
    if (!drop) length += bytes.copy(out, length, fields.lineStart(i), fields.lineEnd(i));
  }
  return length + (close ? closeEnd : end).copy(out, length);
}
