import { normalName } from '../../../../protocol/network.ts';

/** Octets of a ClientHello with its record headers. Real ones have below 2 KiB, with post-quantum key shares too. */
export const clientHelloBytesMax = 32 << 10;

const recordHandshake = 22;
const recordBytesMax = 1 << 14;
const handshakeClientHello = 1;
const extension = { serverName: 0, encryptedHello: 0xfe0d, encryptedServerName: 0xffce } as const;
const hostNameType = 0;

export type ClientHello = {
  /** The server name in the form that rules are compared in; undefined where none, or no host name, is given. */
  serverName: string | undefined;
  /** It carries, or pretends to carry (GREASE), a second ClientHello that only the server can read. */
  encrypted: boolean;
};

/**
 * Reads a TLS ClientHello (RFC 8446 4.1.2, RFC 6066 3) that may be spread over any number of records.
 * Answers `incomplete` while more is needed, and `invalid` for what no TLS client sends: all lengths must fit exactly, and
 * no extension may be there twice, so that the server can't read another name than we do.
 */
export function parseClientHello(bytes: Uint8Array): ClientHello | 'incomplete' | 'invalid' {
  const message = joinRecords(bytes);
  if (message === 'incomplete' && bytes.length >= clientHelloBytesMax) return 'invalid';
  if (typeof message === 'string') return message;
  const reader = new Reader(message);
  reader.skip(4 + 2 + 32); // header, version, random
  reader.vector(1, 0, 32); // session ID
  reader.vector(2, 2, 0xfffe); // cipher suites
  reader.vector(1, 1, 255); // compression methods
  const hello: ClientHello = { serverName: undefined, encrypted: false };
  if (reader.failed) return 'invalid';
  if (reader.done) return hello;
  const extensions = new Reader(reader.vector(2, 0, 0xffff));
  if (reader.failed || !reader.done) return 'invalid';
  const seen = new Set<number>();
  while (!extensions.done && !extensions.failed) {
    const type = extensions.number(2);
    const data = extensions.vector(2, 0, 0xffff);
    if (seen.has(type)) return 'invalid';
    seen.add(type);
    if (type === extension.encryptedHello || type === extension.encryptedServerName) hello.encrypted = true;
    if (type === extension.serverName) {
      const name = readServerName(data);
      if (name === undefined) return 'invalid';
      hello.serverName = normalName(name);
    }
  }
  return extensions.failed ? 'invalid' : hello;
}

/** Whether the bytes may be the begin of a TLS connection. */
export function looksLikeTls(bytes: Uint8Array): boolean {
  return bytes[0] === recordHandshake && (bytes.length < 2 || bytes[1] === 3);
}

/** The whole handshake message, of which the records hold the parts. */
function joinRecords(bytes: Uint8Array): Uint8Array | 'incomplete' | 'invalid' {
  const parts: Uint8Array[] = [];
  let have = 0;
  for (let at = 0; ; ) {
    if (!looksLikeTls(bytes.subarray(at)) && at < bytes.length) return 'invalid';
    if (at + 5 > bytes.length) return 'incomplete';
    const length = ((bytes[at + 3] ?? 0) << 8) | (bytes[at + 4] ?? 0);
    if (length === 0 || length > recordBytesMax) return 'invalid';
    if (at + 5 + length > bytes.length) return 'incomplete';
    const part = bytes.subarray(at + 5, at + 5 + length);
    parts.push(part);
    have += part.length;
    const message = parts.length > 1 ? Buffer.concat(parts) : part;
    if (message.length > 0 && message[0] !== handshakeClientHello) return 'invalid';
    if (message.length >= 4) {
      const wanted = 4 + (((message[1] ?? 0) << 16) | ((message[2] ?? 0) << 8) | (message[3] ?? 0));
      if (wanted > clientHelloBytesMax) return 'invalid';
      // Nothing may follow in the records: the client has nothing else to say before the server answers.
      if (have > wanted) return 'invalid';
      if (have === wanted) return message;
    }
    at += 5 + length;
  }
}

/** The one host name of a server_name extension. */
function readServerName(data: Uint8Array): string | undefined {
  const outer = new Reader(data);
  const list = new Reader(outer.vector(2, 1, 0xffff));
  const type = list.number(1);
  const name = list.vector(2, 1, 0xffff);
  if (outer.failed || !outer.done || list.failed || !list.done || type !== hostNameType) return undefined;
  return Buffer.from(name).toString('latin1');
}

/** Reads big-endian numbers and length-prefixed vectors. After a failure it reads nothing any more. */
class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;
  failed = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get done(): boolean {
    return this.#at === this.#bytes.length;
  }

  skip(count: number): void {
    this.#take(count);
  }

  number(size: number): number {
    return this.#take(size).reduce((sum, byte) => sum * 256 + byte, 0);
  }

  vector(sizeBytes: number, min: number, max: number): Uint8Array {
    const length = this.number(sizeBytes);
    if (length < min || length > max) this.failed = true;
    return this.#take(length);
  }

  #take(count: number): Uint8Array {
    if (this.failed || this.#at + count > this.#bytes.length) {
      this.failed = true;
      return new Uint8Array(0);
    }
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }
}
