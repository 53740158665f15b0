import { assert } from '../base/error.ts';
import { Fields, incomplete, malformed, tooManyFields } from './fields.ts';
import { isTarget, octet, tokenLower } from './octets.ts';

/** Why a request head is refused, and the status of the answer. */
type HeadFault = { readonly status: 400 | 405 | 431 | 501 | 505; readonly reason: string };

/** What follows a head: nothing, a known number of bytes, or chunks. */
export type RequestFraming = { readonly kind: 'none' | 'length' | 'chunked'; readonly length: number };

const noBody: RequestFraming = { kind: 'none', length: 0 };
const chunkedBody: RequestFraming = { kind: 'chunked', length: 0 };
const prefix = Buffer.from('HTTP/1.');
const schemeEnd = '://';
const schemes = new Set(['http://', 'https://']);
const slash = 0x2f;
const asterisk = 0x2a;

/**
 * A parsed request head: positions in `bytes`, valid as long as the bytes are. Reused for the next head. The grammar is
 * that of RFC 9112, without the parts that only old software needs.
 */
export class RequestHead {
  readonly fields: Fields;
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  /** Position after the head. */
  end = 0;
  targetStart = 0;
  targetEnd = 0;
  /** 0 or 1, of HTTP/1.x. */
  minorVersion = 1;
  framing: RequestFraming = noBody;
  /** Why `parse` answered `malformed`. */
  fault: HeadFault = badRequest('');

  constructor(fieldsMax: number) {
    this.fields = new Fields(fieldsMax);
  }

  /**
   * Reads a head from `bytes[start, end)`. Answers the position after it, `incomplete` if more bytes are needed, or
   * `malformed` with `fault` saying why. Empty lines before a request are skipped (RFC 9112 2.2).
   */
  parse(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end && bytes[at] === octet.cr) {
      if (at + 1 >= end) return incomplete;
      if (bytes[at + 1] !== octet.lf) return this.#fail(badRequest('a line ends without CRLF'));
      at += 2;
    }
    this.bytes = bytes;
    this.start = at;
    const fieldsStart = this.#parseRequestLine(at, end);
    if (fieldsStart <= 0) return fieldsStart;
    const position = this.fields.parse(bytes, fieldsStart, end);
    if (position === incomplete) return incomplete;
    if (position === malformed) return this.#fail(badRequest('a header line is malformed'));
    if (position === tooManyFields) return this.#fail({ status: 431, reason: 'there are too many header lines' });
    this.end = position;
    const fault = this.#check();
    return fault === undefined ? position : this.#fail(fault);
  }

  /** A copy that may be kept across an await. */
  keep(): KeptRequestHead {
    return keepRequestHead(this.bytes, this.start, this.end, this.fields.count);
  }

  get method(): string {
    return this.bytes.toString('latin1', this.start, this.targetStart - 1);
  }

  get target(): string {
    return this.bytes.toString('latin1', this.targetStart, this.targetEnd);
  }

  methodIs(method: string): boolean {
    if (this.targetStart - 1 - this.start !== method.length) return false;
    for (let i = 0; i < method.length; i++) if (this.bytes[this.start + i] !== method.charCodeAt(i)) return false;
    return true;
  }

  /** True for a target with a scheme and an authority, as proxies receive it. */
  get targetIsAbsolute(): boolean {
    return this.bytes[this.targetStart] !== slash && this.bytes[this.targetStart] !== asterisk;
  }

  #parseRequestLine(start: number, end: number): number {
    const { bytes } = this;
    let at = start;
    while (at < end && tokenLower[bytes[at] as number] !== 0) at++;
    if (at >= end) return incomplete;
    if (bytes[at] !== octet.space || at === start) return this.#fail(badRequest('the request line is malformed'));
    this.targetStart = ++at;
    while (at < end && isTarget[bytes[at] as number] === 1) at++;
    if (at >= end) return incomplete;
    if (bytes[at] !== octet.space || at === this.targetStart)
      return this.#fail(badRequest('the request line is malformed'));
    this.targetEnd = at++;
    for (let i = 0; i < prefix.length; i++, at++) {
      if (at >= end) return incomplete;
      if (bytes[at] !== prefix[i]) return this.#fail({ status: 505, reason: 'the protocol is not HTTP/1.1' });
    }
    if (at + 2 >= end) return incomplete;
    const minor = (bytes[at] as number) - 0x30;
    if (minor !== 0 && minor !== 1) return this.#fail({ status: 505, reason: 'the protocol is not HTTP/1.1' });
    this.minorVersion = minor;
    if (bytes[at + 1] !== octet.cr || bytes[at + 2] !== octet.lf) {
      return this.#fail(badRequest('the request line does not end with CRLF'));
    }
    return at + 3;
  }

  #check(): HeadFault | undefined {
    const { fields } = this;
    if (fields.times('host') > 1) return badRequest('there is more than one Host header');
    if (!fields.has('host') && this.minorVersion === 1) return badRequest('the Host header is missing');
    if (this.methodIs('CONNECT')) return { status: 405, reason: 'CONNECT is not served' };
    if (!this.#targetIsWellFormed()) return badRequest('the request target is malformed');
    return this.#checkFraming();
  }

  /** A path, `*`, or an absolute URI with an authority (RFC 9112 3.2). */
  #targetIsWellFormed(): boolean {
    const first = this.bytes[this.targetStart];
    if (first === slash) return true;
    if (first === asterisk) return this.targetEnd - this.targetStart === 1;
    const { target } = this;
    const authority = target.indexOf(schemeEnd) + schemeEnd.length;
    if (!schemes.has(target.slice(0, authority).toLowerCase())) return false;
    return (
      authority < target.length && target[authority] !== '/' && target[authority] !== '?' && target[authority] !== '#'
    );
  }

  /** One meaning or none: refuses what two parsers could read differently (RFC 9112 6.3, request smuggling). */
  #checkFraming(): HeadFault | undefined {
    const { fields } = this;
    const lengths = fields.times('content-length');
    this.framing = noBody;
    if (fields.has('transfer-encoding')) {
      if (lengths > 0) return badRequest('Content-Length and Transfer-Encoding exclude each other');
      if (this.minorVersion === 0) return badRequest('Transfer-Encoding needs HTTP/1.1');
      if (fields.times('transfer-encoding') > 1) return badRequest('there is more than one Transfer-Encoding header');
      if (fields.text('transfer-encoding')?.toLowerCase() !== 'chunked') {
        return { status: 501, reason: 'the only Transfer-Encoding understood is chunked' };
      }
      this.framing = chunkedBody;
    } else if (lengths > 0) {
      if (lengths > 1) return badRequest('there is more than one Content-Length header');
      const length = contentLengthOf(fields.text('content-length') ?? '');
      if (length === undefined) return badRequest('Content-Length is not a number');
      this.framing = length === 0 ? noBody : { kind: 'length', length };
    }
    return undefined;
  }

  #fail(fault: HeadFault): typeof malformed {
    this.fault = fault;
    return malformed;
  }
}

declare const isKept: unique symbol;

/**
 * A head that is not overwritten: it may be kept across an await. A reader's own head is valid only in the current turn
 * of the event loop; the next head on any connection overwrites it.
 */
export type KeptRequestHead = RequestHead & { readonly [isKept]: true };

/** A separate head, from a copy of `bytes[start, end)`, which must hold a valid head. */
export function keepRequestHead(bytes: Buffer, start: number, end: number, fieldsMax: number): KeptRequestHead {
  const head = new RequestHead(fieldsMax);
  const copy = Buffer.from(bytes.subarray(start, end));
  assert(head.parse(copy, 0, copy.length) === copy.length, 'what is kept of a request is no head');
  return head as KeptRequestHead;
}

/** A Content-Length, undefined unless it is plain decimal digits below 2^53. */
export function contentLengthOf(text: string): number | undefined {
  if (!/^[0-9]{1,16}$/.test(text)) return undefined;
  const length = Number(text);
  return Number.isSafeInteger(length) ? length : undefined;
}

function badRequest(reason: string): HeadFault {
  return { status: 400, reason };
}
