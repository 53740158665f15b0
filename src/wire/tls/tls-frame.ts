import { frameBytesMax } from '../frame.ts';
import { Gathered } from '../gathered.ts';

/**
 * The content of a TLS connection between control and a node, in frames of nine bytes and a body: messages of calls,
 * and the connections that unix sockets would pass as open files. Such a connection has a number; its bytes go in
 * `data` frames as far as the other side gave `credit`. A `ping` says that a side is there.
 */
export const frameKinds = { message: 0, data: 1, end: 2, reset: 3, credit: 4, ping: 5 } as const;

/** The kind of a frame. */
type FrameKind = (typeof frameKinds)[keyof typeof frameKinds];

/** One frame. `stream`: the number of the connection that it is about, or that comes with the message; 0: none. */
export type TlsFrame = { kind: FrameKind; stream: number; body: Buffer };

const headBytes = 9;
/** The longest piece of a connection's bytes: calls should not wait long behind it. */
export const dataBytesMax = 64 << 10;
/** Body of a `credit` frame: how many bytes more may come, unsigned. */
const creditBytes = 4;

/** The encoded frame: kind, number, length of the body, body. */
export function tlsFrame(kind: FrameKind, stream: number, body: Uint8Array | string = ''): Buffer {
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  const frame = Buffer.allocUnsafe(headBytes + length);
  frame.writeUInt8(kind, 0);
  frame.writeUInt32LE(stream, 1);
  frame.writeUInt32LE(length, 5);
  if (typeof body === 'string') frame.write(body, headBytes);
  else frame.set(body, headBytes);
  return frame;
}

/** A frame that lets the other side send `bytes` bytes more. */
export function creditFrame(stream: number, bytes: number): Buffer {
  const body = Buffer.allocUnsafe(creditBytes);
  body.writeUInt32LE(bytes);
  return tlsFrame(frameKinds.credit, stream, body);
}

/** The bytes that a `credit` frame gives. */
export const creditOf = (body: Buffer): number => body.readUInt32LE(0);

/** Says whether a frame of that kind may have a body of that length. */
function isAllowed(kind: number, stream: number, length: number, messageBytesMax: number): boolean {
  if (kind === frameKinds.message) return length <= messageBytesMax;
  if (kind === frameKinds.ping) return stream === 0 && length === 0;
  if (stream === 0) return false;
  if (kind === frameKinds.data) return length > 0 && length <= dataBytesMax;
  if (kind === frameKinds.credit) return length === creditBytes;
  return (kind === frameKinds.end || kind === frameKinds.reset) && length === 0;
}

/**
 * Splits a stream of bytes into frames. Memory of sandboxes passes through here, so frames are read in place where
 * possible.
 */
export class TlsFrameReader {
  readonly #messageBytesMax: number;
  /** An incomplete frame. */
  readonly #begun = new Gathered();
  #wanted = headBytes;

  constructor(messageBytesMax = frameBytesMax) {
    this.#messageBytesMax = messageBytesMax;
  }

  /**
   * Calls `take` for each complete frame; its body is valid until `take` returns. False: the bytes are not a frame, and
   * no later ones can be.
   */
  push(bytes: Uint8Array, take: (frame: TlsFrame) => void): boolean {
    let rest = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    while (this.#begun.length > 0) {
      const missing = this.#wanted - this.#begun.length;
      if (rest.length < missing) return this.#wait(rest);
      this.#begun.add(rest.subarray(0, missing));
      rest = rest.subarray(missing);
      const begun = this.#begun.take();
      const read = this.#read(begun, take);
      if (read === null) return false;
      // Its head is complete, and says how long it is.
      if (read < begun.length) this.#wait(begun);
    }
    const read = this.#read(rest, take);
    return read !== null && this.#wait(rest.subarray(read));
  }

  /** Takes the complete frames, and answers their size in bytes; null: the bytes are not a frame. */
  #read(bytes: Buffer, take: (frame: TlsFrame) => void): number | null {
    for (let at = 0; ;) {
      this.#wanted = headBytes;
      if (bytes.length - at < headBytes) return at;
      const [kind, stream, length] = [bytes.readUInt8(at), bytes.readUInt32LE(at + 1), bytes.readUInt32LE(at + 5)];
      if (!isAllowed(kind, stream, length, this.#messageBytesMax)) return null;
      this.#wanted = headBytes + length;
      if (bytes.length - at < this.#wanted) return at;
      take({ kind: kind as FrameKind, stream, body: bytes.subarray(at + headBytes, at + this.#wanted) });
      at += this.#wanted;
    }
  }

  #wait(bytes: Buffer): true {
    this.#begun.add(bytes);
    return true;
  }
}
