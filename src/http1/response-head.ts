import { Fields, incomplete, malformed, tooManyFields } from './fields.ts';
import { isFieldValue, octet } from './octets.ts';
import { contentLengthOf } from './request-head.ts';

/** How a response's body ends. `close`: with the connection. */
export type ResponseFraming = { readonly kind: 'none' | 'length' | 'chunked' | 'close'; readonly length: number };

const noBody: ResponseFraming = { kind: 'none', length: 0 };
const chunkedBody: ResponseFraming = { kind: 'chunked', length: 0 };
const untilClose: ResponseFraming = { kind: 'close', length: 0 };
const prefix = Buffer.from('HTTP/1.');

/** A parsed response head: positions in `bytes`. Reused for the next head. */
export class ResponseHead {
  readonly fields: Fields;
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  /** Position after the head. */
  end = 0;
  /** Position after the status line. */
  fieldsStart = 0;
  status = 0;
  /** 0 or 1, of HTTP/1.x. */
  minorVersion = 1;
  /** Why `parse` answered `malformed`; for the log. */
  fault = '';

  constructor(fieldsMax: number) {
    this.fields = new Fields(fieldsMax);
  }

  /**
   * Reads a head from `bytes[start, end)`. Answers the position after it, `incomplete`, or `malformed` with `fault`.
   */
  parse(bytes: Buffer, start: number, end: number): number {
    this.bytes = bytes;
    this.start = start;
    const fieldsStart = this.#parseStatusLine(start, end);
    if (fieldsStart <= 0) return fieldsStart;
    this.fieldsStart = fieldsStart;
    const position = this.fields.parse(bytes, fieldsStart, end);
    if (position === malformed) return this.#fail('a header line is malformed');
    if (position === tooManyFields) return this.#fail('there are too many header lines');
    this.end = position;
    return position;
  }

  /**
   * How the body of this final response ends; undefined if that is ambiguous (RFC 9112 6.3). A sandbox that could make
   * the edge and the client disagree about it could answer other sandboxes' requests.
   */
  framing(toHead: boolean): ResponseFraming | undefined {
    const { fields, status } = this;
    const lengths = fields.times('content-length');
    const codings = fields.times('transfer-encoding');
    if (codings > 0) {
      if (lengths > 0 || codings > 1 || this.minorVersion === 0) return undefined;
      if (fields.text('transfer-encoding')?.toLowerCase() !== 'chunked') return undefined;
    }
    const length = lengths === 0 ? 0 : contentLengthOf(fields.text('content-length') ?? '');
    if (lengths > 1 || length === undefined) return undefined;
    if (toHead || status === 204 || status === 304) return noBody;
    if (codings > 0) return chunkedBody;
    if (lengths === 0) return untilClose;
    return length === 0 ? noBody : { kind: 'length', length };
  }

  #parseStatusLine(start: number, end: number): number {
    const { bytes } = this;
    let at = start;
    for (let i = 0; i < prefix.length; i++, at++) {
      if (at >= end) return incomplete;
      if (bytes[at] !== prefix[i]) return this.#fail('it does not begin with HTTP/1.');
    }
    if (at + 5 > end) return incomplete;
    const minor = digit(bytes[at]);
    const hundreds = digit(bytes[at + 2]);
    const tens = digit(bytes[at + 3]);
    const ones = digit(bytes[at + 4]);
    if ((minor !== 0 && minor !== 1) || bytes[at + 1] !== octet.space)
      return this.#fail('the protocol is not HTTP/1.1');
    if (hundreds < 1 || hundreds > 9 || tens > 9 || ones > 9) return this.#fail('the status is not a number');
    this.minorVersion = minor;
    this.status = hundreds * 100 + tens * 10 + ones;
    at += 5;
    if (at < end && bytes[at] !== octet.space && bytes[at] !== octet.cr)
      return this.#fail('the status line is malformed');
    while (at < end && isFieldValue[bytes[at] as number] === 1) at++;
    if (at >= end) return incomplete;
    if (bytes[at] !== octet.cr) return this.#fail('the status line does not end with CRLF');
    if (at + 1 >= end) return incomplete;
    return bytes[at + 1] === octet.lf ? at + 2 : this.#fail('the status line does not end with CRLF');
  }

  #fail(fault: string): typeof malformed {
    this.fault = fault;
    return malformed;
  }
}

/** 0 to 9, or something outside that. */
function digit(byte: number | undefined): number {
  const value = (byte ?? 0) - 0x30;
  return value < 0 ? 255 : value;
}
