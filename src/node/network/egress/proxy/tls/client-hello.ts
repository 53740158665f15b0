import { normalName } from '../../../../../protocol/network/network.ts';
import { Gathered } from '../gathered.ts';

/**
 * Octets of a ClientHello with its record headers. Real ones have less than 2 KiB, even with post-quantum key shares.
 */
export const clientHelloBytesMax = 32 << 10;

const recordHandshake = 22;
const recordHeaderBytes = 5;
const recordBytesMax = 1 << 14;
const handshakeClientHello = 1;
const extension = { serverName: 0, encryptedHello: 0xfe0d, encryptedServerName: 0xffce } as const;
const hostNameType = 0;

/** What the first message of a TLS client says (RFC 8446, 4.1.2). */
type ClientHello = {
  /** The server name, in the form in which rules are compared; undefined if there is none, or it is not a host name. */
  serverName: string | undefined;
  /** It carries, or pretends to carry (GREASE), a second ClientHello that only the server can read. */
  encrypted: boolean;
};

/**
 * Reads a TLS ClientHello (RFC 8446 4.1.2, RFC 6066 3), which may be spread over any number of records. Answers
 * `incomplete` while more is needed, and `invalid` for what no TLS client sends: all lengths must fit exactly, and no
 * extension may occur twice, so that the server can't read another name than this code does.
 */
export function parseClientHello(bytes: Uint8Array): ClientHello | 'incomplete' | 'invalid' {
  return new ClientHelloReader().push(bytes);
}

/** The same for bytes that come in parts, each of which is read once. */
export class ClientHelloReader {
  readonly #message = new Gathered();
  /** The header of the current record as far as it has come, and how much of its content is missing. */
  #header: number[] = [];
  #recordLeft = 0;
  #seen = 0;

  /** Takes the next bytes of the connection. After any answer but `incomplete`, nothing more may follow. */
  push(bytes: Uint8Array): ClientHello | 'incomplete' | 'invalid' {
    for (let at = 0; at < bytes.length;) {
      if (this.#recordLeft === 0) {
        this.#header.push(bytes[at++] as number);
        if (!this.#headerHolds()) return 'invalid';
        continue;
      }
      const part = Buffer.from(bytes.subarray(at, at + this.#recordLeft));
      this.#message.append(part);
      this.#recordLeft -= part.length;
      at += part.length;
      const wanted = this.#wanted();
      // Nothing may follow in the records: the client has nothing else to say before the server answers.
      if (wanted === 'invalid' || this.#message.length > wanted) return 'invalid';
      if (this.#message.length === wanted)
        return this.#recordLeft === 0 ? parseMessage(this.#message.bytes) : 'invalid';
    }
    this.#seen += bytes.length;
    return this.#seen >= clientHelloBytesMax ? 'invalid' : 'incomplete';
  }

  /** Whether the bytes so far can be the header of a record; once it is complete, its content follows. */
  #headerHolds(): boolean {
    const header = this.#header;
    if (!looksLikeTls(Uint8Array.from(header))) return false;
    if (header.length < recordHeaderBytes) return true;
    this.#recordLeft = ((header[3] ?? 0) << 8) | (header[4] ?? 0);
    this.#header = [];
    return this.#recordLeft > 0 && this.#recordLeft <= recordBytesMax;
  }

  /** Octets of the whole message; infinite until its length has come. */
  #wanted(): number | 'invalid' {
    const { bytes } = this.#message;
    if (bytes[0] !== handshakeClientHello) return 'invalid';
    if (bytes.length < 4) return Number.POSITIVE_INFINITY;
    const wanted = 4 + bytes.readUIntBE(1, 3);
    return wanted > clientHelloBytesMax ? 'invalid' : wanted;
  }
}

function parseMessage(message: Uint8Array): ClientHello | 'invalid' {
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

/** Whether the bytes may be the beginning of a TLS connection. */
export function looksLikeTls(bytes: Uint8Array): boolean {
  return bytes[0] === recordHandshake && (bytes.length < 2 || bytes[1] === 3);
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

/** Reads big-endian numbers and length-prefixed vectors. After a failure it reads nothing more. */
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
