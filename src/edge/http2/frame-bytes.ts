const headBytes = 9;
const lengthBytes = 3;
const typeAt = 3;
const flagsAt = 4;
/** No frame has it. */
const typeOfNone = 255;

/** Hears of some bytes of a frame's payload, and whether they are its last. */
type Part = (type: number, flags: number, bytes: number, isLast: boolean) => void;

/** Finds the frames of HTTP/2 in a stream of bytes (RFC 9113 4.1), however they are cut into pieces. */
export class FrameBytes {
  readonly #part: Part;
  readonly #head = Buffer.alloc(headBytes, typeOfNone);
  /** How much of a frame's head has come; 0 while its payload comes. */
  #headLength = 0;
  /** How much of the payload is still to come. */
  #left: number;

  /** `before`: bytes in front of the first frame. */
  constructor(part: Part, before = 0) {
    this.#part = part;
    this.#left = before;
  }

  /** Takes the next bytes. */
  take(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      if (this.#left === 0) {
        this.#takeHead(bytes[at++] as number);
        continue;
      }
      const taken = Math.min(this.#left, bytes.length - at);
      this.#left -= taken;
      at += taken;
      this.#tell(taken);
    }
  }

  #takeHead(byte: number): void {
    this.#head[this.#headLength++] = byte;
    if (this.#headLength < headBytes) return;
    this.#headLength = 0;
    this.#left = this.#head.readUIntBE(0, lengthBytes);
    if (this.#left === 0) this.#tell(0);
  }

  #tell(bytes: number): void {
    this.#part(this.#head[typeAt] as number, this.#head[flagsAt] as number, bytes, this.#left === 0);
  }
}
