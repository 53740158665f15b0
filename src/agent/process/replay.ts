/** Bytes per block; the oldest block is dropped as a whole. */
const blockBytes = 16 << 10;
/** How much of a terminal's output is kept for clients that attach later, bytes; up to a block more. */
export const replayBytesMax = 256 << 10;

const newline = 10;

/** The end of a terminal's output. */
export class Replay {
  #blocks: Uint8Array[] = [];
  #used = blockBytes;
  #isCut = false;

  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      if (this.#used === blockBytes) this.#begin();
      const part = bytes.subarray(at, at + blockBytes - this.#used);
      this.#blocks.at(-1)?.set(part, this.#used);
      this.#used += part.length;
      at += part.length;
    }
  }

  /**
   * The kept output, in pieces. If something before it was dropped, it begins at a line, so that no control sequence is
   * cut.
   */
  pieces(): Uint8Array[] {
    const pieces = this.#blocks.map((block, index) =>
      index === this.#blocks.length - 1 ? block.subarray(0, this.#used) : block,
    );
    const [first, ...rest] = pieces;
    return first && this.#isCut ? [first.subarray(first.indexOf(newline) + 1), ...rest] : pieces;
  }

  #begin(): void {
    this.#blocks.push(new Uint8Array(blockBytes));
    this.#used = 0;
    if (this.#blocks.length <= replayBytesMax / blockBytes + 1) return;
    this.#blocks.shift();
    this.#isCut = true;
  }
}
