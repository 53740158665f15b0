/** The longest message: a list of all sandboxes of a node, or a whole Dockerfile with its inline files, is far below. Bytes. */
export const frameBytesMax = 64 << 20;

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
  /** Pieces of a message that is not whole yet. */
  #pieces: Buffer[] = [];
  #length = 0;
  /** How many bytes the next step needs. */
  #wanted = headBytes;

  /** Calls `take` for each message that is whole now. False: what came can't be a message, and nothing after it can. */
  push(bytes: Uint8Array, take: (text: string, withFile: boolean) => void): boolean {
    // The runtime uses its buffer again.
    this.#pieces.push(Buffer.from(bytes));
    this.#length += bytes.length;
    if (this.#length < this.#wanted) return true;
    let rest = this.#pieces.length === 1 && this.#pieces[0] ? this.#pieces[0] : Buffer.concat(this.#pieces);
    for (;;) {
      if (rest.length < headBytes) break;
      const length = rest.readUInt32LE(0);
      const flag = rest.readUInt8(4);
      if (length > frameBytesMax || flag > 1) return false;
      this.#wanted = headBytes + length;
      if (rest.length < this.#wanted) break;
      take(rest.toString('utf8', headBytes, this.#wanted), flag === 1);
      rest = rest.subarray(this.#wanted);
      this.#wanted = headBytes;
    }
    this.#pieces = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    return true;
  }
}
