import type { Caller } from '../protocol/wire/method.ts';
import { Gathered } from './gathered.ts';

/**
 * The longest message, bytes: far above a list of all sandboxes of a node, or a whole Dockerfile with its inline files.
 */
export const frameBytesMax = 64 << 20;

/**
 * The longest message of a caller, bytes. An edge, which strangers may have taken over, only asks for a sandbox or says
 * how many connections it has; reading a message as long as an api may send takes seconds and gigabytes.
 */
export const callBytesMax: Readonly<Record<Caller, number>> = { api: frameBytesMax, edge: 64 << 10 };

/** Says whether the other side accepts a message of that length: a longer one would close the channel for all calls. */
export const isWithinFrame = (text: string): boolean => Buffer.byteLength(text) <= frameBytesMax;

/** Before each message: the length of the text in bytes, and whether a file comes with it. */
const headBytes = 5;

/**
 * The encoded message: four bytes of length, one byte that says whether a file comes with it, and the text in UTF-8.
 */
export function frameOf(text: string, withFile: boolean): Buffer {
  const length = Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(headBytes + length);
  frame.writeUInt32LE(length, 0);
  frame.writeUInt8(withFile ? 1 : 0, 4);
  frame.write(text, headBytes);
  return frame;
}

/** Splits a stream of bytes into messages. */
export class FrameReader {
  readonly #bytesMax: number;
  /** An incomplete message. */
  readonly #begun = new Gathered();
  /** Bytes needed for the next step. */
  #wanted = headBytes;

  /** `bytesMax`: limit for one message. */
  constructor(bytesMax = frameBytesMax) {
    this.#bytesMax = bytesMax;
  }

  /** Calls `take` for each complete message. False: the bytes are not a message, and no later ones can be. */
  push(bytes: Uint8Array, take: (text: string, withFile: boolean) => void): boolean {
    // Mostly whole messages come: they are read in place.
    const isBegun = this.#begun.length > 0;
    if (isBegun || bytes.length < this.#wanted) this.#begun.add(bytes);
    if (this.#begun.length > 0 && this.#begun.length < this.#wanted) return true;
    let rest = isBegun ? this.#begun.take() : viewOf(bytes);
    for (;;) {
      if (rest.length < headBytes) break;
      const length = rest.readUInt32LE(0);
      const flag = rest.readUInt8(4);
      if (length > this.#bytesMax || flag > 1) return false;
      this.#wanted = headBytes + length;
      if (rest.length < this.#wanted) break;
      take(rest.toString('utf8', headBytes, this.#wanted), flag === 1);
      rest = rest.subarray(this.#wanted);
      this.#wanted = headBytes;
    }
    if (rest.length > 0) this.#begun.add(rest);
    return true;
  }
}

const viewOf = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
