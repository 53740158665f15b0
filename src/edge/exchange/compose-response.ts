import { headerId, type KnownHeader } from '../../http1/known-headers.ts';
import { nominatedFields } from './nominated-fields.ts';
import type { ResponseHead } from '../../http1/response-head.ts';

const closeEnd = Buffer.from('Connection: close\r\n\r\n');
const end = Buffer.from('\r\n');
/** Makes the answer a page of its own opaque origin, without scripts, whatever its content type (CSP 3, `sandbox`). */
const inertFields = Buffer.from('Content-Security-Policy: sandbox\r\nX-Content-Type-Options: nosniff\r\n');
/** Position of the minor version in `HTTP/1.1`. */
const minorVersionAt = 7;
const digitOne = 0x31;

/**
 * Fields that an answer sets for its whole origin: cookies, stored data, how and where else to reach the origin, where
 * to report.
 */
const ofOrigin = [
  'set-cookie',
  'clear-site-data',
  'strict-transport-security',
  'alt-svc',
  'nel',
  'report-to',
  'reporting-endpoints',
  'accept-ch',
  'critical-ch',
  'service-worker-allowed',
] as const satisfies KnownHeader[];
const ofOriginIds: ReadonlySet<number> = new Set(ofOrigin.map(name => headerId[name]));

/** How the head of a response is changed on its way. */
type ResponsePlan = {
  /** The connection closes after it. */
  readonly close: boolean;
  /** The answer arrives at an origin that is not the sender's, so it may speak only for itself. */
  readonly isForeign: boolean;
  /** A browser may show it as a page of that origin, where it must be inert. */
  readonly isInert: boolean;
};

/** Whether a head sets something for its whole origin. */
export function speaksForOrigin({ fields }: ResponseHead): boolean {
  return ofOrigin.some(name => fields.has(name));
}

/**
 * Writes the head of an interim response or of a protocol switch to the start of `out`, which must have room, without
 * the fields that speak for the whole origin. Answers its length.
 */
export function composeForeignHead(out: Buffer, { bytes, start, fieldsStart, fields }: ResponseHead): number {
  let length = bytes.copy(out, 0, start, fieldsStart);
  for (let i = 0; i < fields.count; i++)
    if (!ofOriginIds.has(fields.ids[i] as number))
      length += bytes.copy(out, length, fields.lineStart(i), fields.lineEnd(i));
  return length + end.copy(out, length);
}

/** True if the head can't pass unchanged. */
export function needsRewrite(head: ResponseHead, { close, isForeign, isInert }: ResponsePlan): boolean {
  const { fields } = head;
  return (
    close ||
    isInert ||
    (isForeign && speaksForOrigin(head)) ||
    head.minorVersion === 0 ||
    fields.has('connection') ||
    fields.has('keep-alive') ||
    fields.has('proxy-connection') ||
    (fields.has('upgrade') && head.status !== 426)
  );
}

/**
 * Writes the head that the client gets to the start of `out`, which must have room, and answers its length. It is
 * HTTP/1.1, without the fields about the connection to the upstream. `close` adds `Connection: close`, `isForeign`
 * drops the fields that speak for the whole origin, and `isInert` adds the fields that make a page inert.
 */
export function composeResponse(out: Buffer, head: ResponseHead, { close, isForeign, isInert }: ResponsePlan): number {
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
      (isForeign && ofOriginIds.has(id)) ||
      (nominated !== null && nominated.has(fields.nameAt(i)));
    if (!drop) length += bytes.copy(out, length, fields.lineStart(i), fields.lineEnd(i));
  }
  if (isInert) length += inertFields.copy(out, length);
  return length + (close ? closeEnd : end).copy(out, length);
}
