import type { Field } from './head-bytes.ts';
import { hashStep, headerId, identifyHeader, type KnownHeader, knownHeaderCount } from './known-headers.ts';
import { isFieldValue, octet, tokenLower } from './octets.ts';

/** Entries per field in `Fields.bounds`. */
const stride = 4;

/** What a reader answers in place of a position: more bytes are needed. */
export const incomplete = 0;
/** What was read can't be part of a message. */
export const malformed = -1;
/** There are more fields than the reader has room for. */
export const tooManyFields = -2;

/**
 * The header fields of one message, as positions in the bytes they were parsed from: nothing is allocated per field.
 * Reused for the next message.
 */
export class Fields {
  /** How many fields there are. */
  count = 0;
  /** The id of each field (see `headerId`). */
  readonly ids: Uint8Array;
  /** Start and end of name and value of each field. */
  readonly bounds: Int32Array;
  readonly #first = new Int16Array(knownHeaderCount);
  readonly #times = new Uint8Array(knownHeaderCount);
  #bytes: Buffer = Buffer.alloc(0);
  #end = 0;

  constructor(fieldsMax: number) {
    this.ids = new Uint8Array(fieldsMax);
    this.bounds = new Int32Array(fieldsMax * stride);
  }

  /**
   * Reads the field lines of `bytes[position, end)`, including the empty line after them. Answers the position after
   * that line, or `incomplete`, `malformed`, `tooManyFields`. Strict where leniency would let two parsers disagree (RFC
   * 9112 5): no line folding, no bare LF, no space before the colon, no control characters.
   */
  parse(bytes: Buffer, position: number, end: number): number {
    this.#bytes = bytes;
    this.count = 0;
    this.#first.fill(-1);
    this.#times.fill(0);
    const { bounds } = this;
    let at = position;
    for (;;) {
      if (at >= end) return incomplete;
      if (bytes[at] === octet.cr) {
        if (at + 1 >= end) return incomplete;
        if (bytes[at + 1] !== octet.lf) return malformed;
        this.#end = at;
        return at + 2;
      }
      const nameStart = at;
      let hash = 0;
      for (;;) {
        const lower = tokenLower[bytes[at] as number] as number;
        if (lower === 0) break;
        hash = hashStep(hash, lower);
        if (++at >= end) return incomplete;
      }
      if (bytes[at] !== octet.colon || at === nameStart) return malformed;
      const nameEnd = at++;
      while (at < end && isBlank(bytes[at] as number)) at++;
      const valueStart = at;
      while (at < end && isFieldValue[bytes[at] as number] === 1) at++;
      if (at >= end) return incomplete;
      if (bytes[at] !== octet.cr) return malformed;
      if (at + 1 >= end) return incomplete;
      if (bytes[at + 1] !== octet.lf) return malformed;
      let valueEnd = at;
      while (valueEnd > valueStart && isBlank(bytes[valueEnd - 1] as number)) valueEnd--;
      at += 2;
      if (this.count >= this.ids.length) return tooManyFields;
      this.#add(identifyHeader(bytes, nameStart, nameEnd, hash));
      const slot = (this.count - 1) * stride;
      bounds[slot] = nameStart;
      bounds[slot + 1] = nameEnd;
      bounds[slot + 2] = valueStart;
      bounds[slot + 3] = valueEnd;
    }
  }

  has(name: KnownHeader): boolean {
    return this.#first[headerId[name]] !== -1;
  }

  /** How many lines carry the header, at most 255. */
  times(name: KnownHeader): number {
    return this.#times[headerId[name]] as number;
  }

  /** The value of the header's first line as Latin-1 text, undefined where it is absent. */
  text(name: KnownHeader): string | undefined {
    const index = this.#first[headerId[name]] as number;
    return index < 0 ? undefined : this.textAt(index);
  }

  /** The value of field `index` as Latin-1 text. */
  textAt(index: number): string {
    return this.#bytes.toString('latin1', this.valueStart(index), this.valueEnd(index));
  }

  /** The name of field `index` in lower case. */
  nameAt(index: number): string {
    return this.#bytes
      .toString('latin1', this.lineStart(index), this.bounds[index * stride + 1] as number)
      .toLowerCase();
  }

  /** The values of all lines of a header, joined as one list. Undefined where it is absent. */
  list(name: KnownHeader): string | undefined {
    if (this.times(name) < 2) return this.text(name);
    const values: string[] = [];
    for (let i = 0; i < this.count; i++) if (this.ids[i] === headerId[name]) values.push(this.textAt(i));
    return values.join(', ');
  }

  /** All fields in their order, as written. */
  all(): Field[] {
    return Array.from({ length: this.count }, (_, index) => ({
      name: this.#bytes.toString('latin1', this.lineStart(index), this.bounds[index * stride + 1] as number),
      value: this.textAt(index),
    }));
  }

  /** Index of the header's first line, -1 where it is absent. */
  indexOf(name: KnownHeader): number {
    return this.#first[headerId[name]] as number;
  }

  lineStart(index: number): number {
    return this.bounds[index * stride] as number;
  }

  /** The position after the CRLF of field `index`. */
  lineEnd(index: number): number {
    return index + 1 < this.count ? this.lineStart(index + 1) : this.#end;
  }

  valueStart(index: number): number {
    return this.bounds[index * stride + 2] as number;
  }

  valueEnd(index: number): number {
    return this.bounds[index * stride + 3] as number;
  }

  #add(id: number): void {
    this.ids[this.count] = id;
    if (id < knownHeaderCount) {
      if (this.#first[id] === -1) this.#first[id] = this.count;
      this.#times[id] = Math.min(255, (this.#times[id] as number) + 1);
    }
    this.count++;
  }
}

function isBlank(byte: number): boolean {
  return byte === octet.space || byte === octet.tab;
}
