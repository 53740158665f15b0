import { FrameBytes } from './frame-bytes.ts';

const typeOfData = 0;

/** Counts the bytes of bodies within HTTP/2 frames. */
export class BodyBytes {
  /** How many body bytes there were. */
  total = 0;
  readonly #frames = new FrameBytes((type, _flags, bytes) => {
    if (type === typeOfData) this.total += bytes;
  });

  /** Takes the next bytes. */
  take(bytes: Uint8Array): void {
    this.#frames.take(bytes);
  }
}
