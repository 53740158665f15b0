/**
 * The longest message: a list of all sandboxes of a node, or a whole Dockerfile with its inline files, is far below.
 * Bytes.
 */
export const frameBytesMax = 64 << 20;

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
  /** Pieces of a message that is not whole yet. */
  #pieces: Buffer[] = [];
  #length = 0;
  /** Bytes that the next step needs. */
  #wanted = headBytes;

  /** `bytesMax`: of one message. */
  constructor(bytesMax = frameBytesMax) {
    this.#bytesMax = bytesMax;
  }

  /** Calls `take` for each message that is complete now. False: the bytes are no message, and no later ones can be. */
  push(bytes: Uint8Array, take: (text: string, withFile: boolean) => void): boolean {
    this.#length += bytes.length;
    if (this.#length < this.#wanted) {
      // The runtime uses its buffer again.
      this.#pieces.push(Buffer.from(bytes));
      return true;
    }
    // Most often whole messages come: they are read where they are.
    let rest = this.#pieces.length > 0 ? Buffer.concat([...this.#pieces, bytes]) : viewOf(bytes);
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
    this.#pieces = rest.length === 0 ? [] : [Buffer.from(rest)];
    this.#length = rest.length;
    return true;
  }
}

const viewOf = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
