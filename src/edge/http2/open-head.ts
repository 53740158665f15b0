import { FrameBytes } from './frame-bytes.ts';

const prefaceBytes = 24;
const typeOfHead = 1;
const typeOfMore = 9;
const endHeaders = 4;

/** Counts the bytes of a head that comes in several HTTP/2 frames and is not whole yet (RFC 9113 6.10). */
export class OpenHead {
  bytes = 0;
  readonly #frames = new FrameBytes((type, flags, bytes, isLast) => {
    if (type !== typeOfHead && type !== typeOfMore) return;
    this.bytes = isLast && (flags & endHeaders) !== 0 ? 0 : this.bytes + bytes;
  }, prefaceBytes);

  /** Takes what a client sends, its preface first. */
  take(bytes: Uint8Array): void {
    this.#frames.take(bytes);
  }
}
