const headBytes = 9;
const lengthBytes = 3;
const typeAt = 3;
const typeOfData = 0;

/** Counts the bytes of bodies within HTTP/2 frames (RFC 9113 4.1), however the frames are cut into pieces. */
export class BodyBytes {
  /** How many body bytes there were. */
  total = 0;
  readonly #head = Buffer.alloc(headBytes);
  /** How much of a frame's head has come; 0 while its payload comes. */
  #headLength = 0;
  /** How much of the payload is still to come. */
  #left = 0;

  /** Takes the next bytes. */
  take(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      if (this.#left === 0) {
        this.#takeHead(bytes[at++] as number);
        continue;
      }
      const taken = Math.min(this.#left, bytes.length - at);
      if (this.#head[typeAt] === typeOfData) this.total += taken;
      this.#left -= taken;
      at += taken;
    }
  }

  #takeHead(byte: number): void {
    this.#head[this.#headLength++] = byte;
    if (this.#headLength < headBytes) return;
    this.#headLength = 0;
    this.#left = this.#head.readUIntBE(0, lengthBytes);
  }
}
