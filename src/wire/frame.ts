import type { Caller } from '../protocol/wire/method.ts';
import { Gathered } from './gathered.ts';

/**
 * The longest message: a list of all sandboxes of a node, or a whole Dockerfile with its inline files, is far below.
 * Bytes.
 */
export const frameBytesMax = 64 << 20;

/**
 * The longest message of a caller, bytes. An edge, which strangers may have taken over, asks for a sandbox or says how
 * many connections it has; to read what is as long as an api may have to say takes seconds and gigabytes.
 */
export const callBytesMax: Readonly<Record<Caller, number>> = { api: frameBytesMax, edge: 64 << 10 };

/** Whether the other side takes a message of that length: after one that it does not, it closes the channel for all. */
export const isWithinFrame = (text: string): boolean => Buffer.byteLength(text) <= frameBytesMax;

/** Length of the text in bytes, and whether a file comes with it, before each message. */
const headBytes = 5;

/** A message as it is written: four bytes of length, one that says whether a file comes with it, text in UTF-8. */
export function frameOf(text: string, withFile: boolean): Buffer {
  const length = Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(headBytes + length);
  frame.writeUInt32LE(length, 0);
  frame.writeUInt8(withFile ? 1 : 0, 4);
  frame.write(text, headBytes);
  return frame;
}

/** Finds the messages in bytes that come in pieces. */
export class FrameReader {
  readonly #bytesMax: number;
  /** A message that is not whole yet. */
  readonly #begun = new Gathered();
  /** Bytes that the next step needs. */
  #wanted = headBytes;

  /** `bytesMax`: of one message. */
  constructor(bytesMax = frameBytesMax) {
    this.#bytesMax = bytesMax;
  }

  /** Calls `take` for each message that is complete now. False: the bytes are no message, and no later ones can be. */
  push(bytes: Uint8Array, take: (text: string, withFile: boolean) => void): boolean {
    // Most often whole messages come: they are read where they are.
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
