/** How the end of a message's body is found. `close`: with the end of the connection. */
export type BodyKind = 'none' | 'length' | 'chunked' | 'close';

/** Octets of a chunk's size line, and of each trailer field. */
const lineBytesMax = 8192;
/** Octets of all trailer fields. */
const trailersBytesMax = 32 << 10;

/** Tells which of the bytes on a connection belong to a message's body. They are passed on as they are. */
export class Body {
  readonly #kind: BodyKind;
  /** Octets left of the body, or of the present chunk with its CRLF. */
  #left: number;
  #line = '';
  #at: 'size' | 'chunk' | 'trailers' | 'end' = 'size';
  #trailersBytes = 0;

  constructor({ kind, length }: { kind: BodyKind; length: number }) {
    this.#kind = kind;
    this.#left = kind === 'length' ? length : 0;
  }

  get done(): boolean {
    return this.#kind === 'none' || (this.#kind === 'length' && this.#left === 0) || (this.#kind === 'chunked' && this.#at === 'end');
  }

  get untilClose(): boolean {
    return this.#kind === 'close';
  }

  /** How many of the bytes are the body's; -1 if it is malformed. */
  take(bytes: Buffer): number {
    if (this.#kind === 'close') return bytes.length;
    if (this.#kind === 'none') return 0;
    if (this.#kind === 'chunked') return this.#takeChunks(bytes);
    const taken = Math.min(this.#left, bytes.length);
    this.#left -= taken;
    return taken;
  }

  #takeChunks(bytes: Buffer): number {
    let at = 0;
    while (at < bytes.length && this.#at !== 'end') {
      if (this.#at === 'chunk' && this.#left > 2) {
        const taken = Math.min(this.#left - 2, bytes.length - at);
        this.#left -= taken;
        at += taken;
        continue;
      }
      const byte = bytes[at++] as number;
      if (this.#at === 'chunk') {
        if (byte !== (this.#left-- === 2 ? 13 : 10)) return -1;
        if (this.#left === 0) this.#at = 'size';
      } else {
        this.#line += String.fromCharCode(byte);
        if (this.#line.length > lineBytesMax) return -1;
        if (byte === 10 && !this.#endLine()) return -1;
      }
    }
    return at;
  }

  /** Understands a whole line: a chunk's size, or a trailer field. */
  #endLine(): boolean {
    const line = this.#line;
    this.#line = '';
    if (!line.endsWith('\r\n') || line.indexOf('\r') !== line.length - 2) return false;
    if (this.#at === 'trailers') {
      this.#trailersBytes += line.length;
      if (line === '\r\n') this.#at = 'end';
      return this.#trailersBytes <= trailersBytesMax && (line === '\r\n' || /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n$/.test(line));
    }
    const size = /^([0-9a-fA-F]{1,12})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\r\n$/.exec(line)?.[1];
    if (size === undefined) return false;
    this.#left = Number.parseInt(size, 16) + 2;
    this.#at = this.#left === 2 ? 'trailers' : 'chunk';
    return true;
  }
}
