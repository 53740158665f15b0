import { hexValue, isFieldValue, octet, tokenLower } from './octets.ts';

/** Octets of one chunk-size line with its extensions. */
const sizeLineBytesMax = 4096;
/**
 * Fields that frame or route a message have no place behind it (RFC 9110 6.5.1). Some parsers obey a length
 * there, some refuse it, some pass it over: what follows would be a request to one and not to another.
 */
const neverTrailers = new Set(['content-length', 'transfer-encoding', 'host', 'te', 'connection', 'upgrade', 'expect']);
const trailerNameCharactersKept = 20;
/** Octets of all trailer fields of one body. */
const trailerBytesMax = 16_384;

const enum At {
  sizeFirst,
  size,
  extensionFirst,
  extension,
  sizeLf,
  data,
  dataCr,
  dataLf,
  trailerFirst,
  trailerName,
  trailerValue,
  trailerLf,
  finalLf,
  end,
}

/** Hears where in the scanned bytes data is. */
export type DataListener = (bytes: Uint8Array, start: number, end: number) => void;

/**
 * Finds the end of a chunked body (RFC 9112 7.1) in bytes that arrive in pieces of any size. Data is skipped, not looked
 * at. Strict: CRLF only, hexadecimal sizes below 2^53, token names and no control characters in extensions and trailers.
 */
export class ChunkScanner {
  #at: At = At.sizeFirst;
  #size = 0;
  #lineBytes = 0;
  /** Fields came after the last chunk. */
  hadTrailers = false;
  #trailerName = '';
  readonly #onData: DataListener | undefined;

  constructor(onData?: DataListener) {
    this.#onData = onData;
  }

  reset(): void {
    this.#at = At.sizeFirst;
    this.#size = 0;
    this.#lineBytes = 0;
    this.hadTrailers = false;
  }

  get done(): boolean {
    return this.#at === At.end;
  }

  /** Looks at `bytes[start, end)`. Answers the position after the body's last byte in it (`end` if it goes on), -1 if it is malformed. */
  scan(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    while (at < end && this.#at !== At.end) {
      if (this.#at === At.data) {
        const skipped = Math.min(this.#size, end - at);
        this.#size -= skipped;
        this.#onData?.(bytes, at, at + skipped);
        at += skipped;
        if (this.#size === 0) this.#at = At.dataCr;
      } else if (!this.#step(bytes[at++] as number)) {
        return -1;
      }
    }
    return at;
  }

  /** Takes one octet that is not data. False where it may not stand. */
  #step(byte: number): boolean {
    switch (this.#at) {
      case At.sizeFirst:
        return this.#takeDigit(byte);
      case At.size:
        if (byte === octet.cr) return this.#become(At.sizeLf);
        if (byte === octet.semicolon) return this.#become(At.extensionFirst);
        return this.#takeDigit(byte);
      case At.extensionFirst:
        // An extension has a name (RFC 9112 7.1.1): some parsers refuse one without, others would read on.
        if (++this.#lineBytes > sizeLineBytesMax) return false;
        if (byte === octet.space || byte === octet.tab) return true;
        return tokenLower[byte] !== 0 && this.#become(At.extension);
      case At.extension:
        if (byte === octet.cr) return this.#become(At.sizeLf);
        if (byte === octet.semicolon) return this.#become(At.extensionFirst);
        return isFieldValue[byte] === 1 && ++this.#lineBytes <= sizeLineBytesMax;
      case At.sizeLf:
        this.#lineBytes = 0;
        return byte === octet.lf && this.#become(this.#size === 0 ? At.trailerFirst : At.data);
      case At.dataCr:
        return byte === octet.cr && this.#become(At.dataLf);
      case At.dataLf:
        return byte === octet.lf && this.#become(At.sizeFirst);
      case At.finalLf:
        return byte === octet.lf && this.#become(At.end);
      default:
        return this.#stepTrailer(byte);
    }
  }

  #stepTrailer(byte: number): boolean {
    if (++this.#lineBytes > trailerBytesMax) return false;
    switch (this.#at) {
      case At.trailerFirst:
        if (byte === octet.cr) return this.#become(At.finalLf);
        this.hadTrailers = true;
        this.#trailerName = '';
        return this.#stepTrailerName(byte);
      case At.trailerName:
        if (byte === octet.colon) return !neverTrailers.has(this.#trailerName) && this.#become(At.trailerValue);
        return this.#stepTrailerName(byte);
      case At.trailerValue:
        if (byte === octet.cr) return this.#become(At.trailerLf);
        return isFieldValue[byte] === 1;
      default:
        return byte === octet.lf && this.#become(At.trailerFirst);
    }
  }

  #stepTrailerName(byte: number): boolean {
    const lower = tokenLower[byte] as number;
    // One character more than any of the names above: it is none of them then.
    if (this.#trailerName.length < trailerNameCharactersKept) this.#trailerName += String.fromCharCode(lower);
    return lower !== 0 && this.#become(At.trailerName);
  }

  #takeDigit(byte: number): boolean {
    const value = hexValue[byte] as number;
    if (value === 255 || ++this.#lineBytes > 32) return false;
    this.#size = this.#size * 16 + value;
    return this.#size <= Number.MAX_SAFE_INTEGER && this.#become(At.size);
  }

  #become(next: At): true {
    this.#at = next;
    return true;
  }
}
