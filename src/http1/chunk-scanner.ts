import { hexValue, isFieldValue, octet, tokenLower } from './octets.ts';

/** Octets of one chunk-size line with its extensions. */
const sizeLineBytesMax = 4096;
/**
 * Fields that frame or route a message must not be trailers (RFC 9110 6.5.1). Some parsers obey a length there, some
 * refuse it, some ignore it: what follows would be a request to one parser and not to another.
 */
const neverTrailers = new Set(['content-length', 'transfer-encoding', 'host', 'te', 'connection', 'upgrade', 'expect']);
const trailerNameCharactersKept = 20;
/** Octets of all trailer fields of one body. */
const trailerBytesMax = 16_384;

// Where the next octet of a chunked body stands. Plain numeric constants: they are compared for each octet, and the
// members of an object would have to be looked up.
const atSizeFirst = 0;
const atSize = 1;
const atExtensionFirst = 2;
const atExtension = 3;
const atSizeLf = 4;
const atData = 5;
const atDataCr = 6;
const atDataLf = 7;
const atTrailerFirst = 8;
const atTrailerName = 9;
const atTrailerValue = 10;
const atTrailerLf = 11;
const atFinalLf = 12;
const atEnd = 13;

/** Hears where data is in the scanned bytes. */
export type DataListener = (bytes: Uint8Array, start: number, end: number) => void;

/**
 * Finds the end of a chunked body (RFC 9112 7.1) in bytes that arrive in pieces of any size. It skips data without
 * looking at it. Strict: CRLF only, hexadecimal sizes below 2^53, token names, and no control characters in extensions
 * and trailers.
 */
export class ChunkScanner {
  #at: number = atSizeFirst;
  #size = 0;
  #lineBytes = 0;
  /** Fields came after the last chunk. */
  hadTrailers = false;
  #trailerName = '';
  readonly #onData: DataListener | undefined;
  readonly #onTrailers: DataListener | undefined;

  /** `onTrailers` hears where the trailers are, up to and including the empty line after them. */
  constructor(onData?: DataListener, onTrailers?: DataListener) {
    this.#onData = onData;
    this.#onTrailers = onTrailers;
  }

  reset(): void {
    this.#at = atSizeFirst;
    this.#size = 0;
    this.#lineBytes = 0;
    this.hadTrailers = false;
  }

  get done(): boolean {
    return this.#at === atEnd;
  }

  /**
   * Scans `bytes[start, end)`. Answers the position after the body's last byte (`end` if the body goes on), -1 if it is
   * malformed.
   */
  scan(bytes: Uint8Array, start: number, end: number): number {
    let position = start;
    let trailersFrom = this.#at >= atTrailerFirst && this.#at !== atEnd ? start : -1;
    while (position < end && this.#at !== atEnd) {
      if (this.#at === atData) {
        const skipped = Math.min(this.#size, end - position);
        this.#size -= skipped;
        this.#onData?.(bytes, position, position + skipped);
        position += skipped;
        if (this.#size === 0) this.#at = atDataCr;
      } else {
        if (!this.#step(bytes[position++] as number)) return -1;
        if (trailersFrom < 0 && this.#at === atTrailerFirst) trailersFrom = position;
      }
    }
    if (trailersFrom >= 0) this.#onTrailers?.(bytes, trailersFrom, position);
    return position;
  }

  /** Takes one octet that is not data. False if it must not stand here. */
  #step(byte: number): boolean {
    switch (this.#at) {
      case atSizeFirst:
        return this.#takeDigit(byte);
      case atSize:
        if (byte === octet.cr) return this.#become(atSizeLf);
        if (byte === octet.semicolon) return this.#become(atExtensionFirst);
        return this.#takeDigit(byte);
      case atExtensionFirst:
        // An extension must have a name (RFC 9112 7.1.1): some parsers refuse one without, others would read on.
        if (++this.#lineBytes > sizeLineBytesMax) return false;
        if (byte === octet.space || byte === octet.tab) return true;
        return tokenLower[byte] !== 0 && this.#become(atExtension);
      case atExtension:
        if (byte === octet.cr) return this.#become(atSizeLf);
        if (byte === octet.semicolon) return this.#become(atExtensionFirst);
        return isFieldValue[byte] === 1 && ++this.#lineBytes <= sizeLineBytesMax;
      case atSizeLf:
        this.#lineBytes = 0;
        return byte === octet.lf && this.#become(this.#size === 0 ? atTrailerFirst : atData);
      case atDataCr:
        return byte === octet.cr && this.#become(atDataLf);
      case atDataLf:
        return byte === octet.lf && this.#become(atSizeFirst);
      case atFinalLf:
        return byte === octet.lf && this.#become(atEnd);
      default:
        return this.#stepTrailer(byte);
    }
  }

  #stepTrailer(byte: number): boolean {
    if (++this.#lineBytes > trailerBytesMax) return false;
    switch (this.#at) {
      case atTrailerFirst:
        if (byte === octet.cr) return this.#become(atFinalLf);
        this.hadTrailers = true;
        this.#trailerName = '';
        return this.#stepTrailerName(byte);
      case atTrailerName:
        if (byte === octet.colon) return !neverTrailers.has(this.#trailerName) && this.#become(atTrailerValue);
        return this.#stepTrailerName(byte);
      case atTrailerValue:
        if (byte === octet.cr) return this.#become(atTrailerLf);
        return isFieldValue[byte] === 1;
      default:
        return byte === octet.lf && this.#become(atTrailerFirst);
    }
  }

  #stepTrailerName(byte: number): boolean {
    const lower = tokenLower[byte] as number;
    // Keeps one character more than the longest of the names above: a longer name then equals none of them.
    if (this.#trailerName.length < trailerNameCharactersKept) this.#trailerName += String.fromCharCode(lower);
    return lower !== 0 && this.#become(atTrailerName);
  }

  #takeDigit(byte: number): boolean {
    const value = hexValue[byte] as number;
    if (value === 255 || ++this.#lineBytes > 32) return false;
    this.#size = this.#size * 16 + value;
    return this.#size <= Number.MAX_SAFE_INTEGER && this.#become(atSize);
  }

  #become(next: number): true {
    this.#at = next;
    return true;
  }
}
