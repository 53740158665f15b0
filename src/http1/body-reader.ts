import { ChunkScanner, type DataListener } from './chunk-scanner.ts';

/** How to find the end of a body: there is none, by its length, by its last chunk, or by the end of the connection. */
export type BodyKind = 'none' | 'length' | 'chunked' | 'close';

/** Tells which of the bytes on a connection belong to the current message's body. Reused for the next message. */
export class BodyReader {
  #kind: BodyKind = 'none';
  #left = 0;
  readonly #chunks: ChunkScanner;
  readonly #onData: DataListener | undefined;

  /** `onData` hears where in the taken bytes the body's content is, `onTrailers` where the trailers are. */
  constructor(onData?: DataListener, onTrailers?: DataListener) {
    this.#onData = onData;
    this.#chunks = new ChunkScanner(onData, onTrailers);
  }

  /** Begins a body; `length` only matters if `kind` is `length`. */
  reset(kind: BodyKind, length: number): void {
    this.#kind = kind;
    this.#left = length;
    if (kind === 'chunked') this.#chunks.reset();
  }

  /** Fields came after the body's last chunk. */
  get hadTrailers(): boolean {
    return this.#kind === 'chunked' && this.#chunks.hadTrailers;
  }

  get kind(): BodyKind {
    return this.#kind;
  }

  /** True once the whole body was taken. Never for a body that ends with its connection. */
  get done(): boolean {
    switch (this.#kind) {
      case 'none':
        return true;
      case 'length':
        return this.#left === 0;
      case 'chunked':
        return this.#chunks.done;
      case 'close':
        return false;
    }
  }

  /**
   * Takes the part of `bytes[start, end)` that belongs to the body. Answers the position after it, -1 if the body is
   * malformed.
   */
  take(bytes: Uint8Array, start: number, end: number): number {
    switch (this.#kind) {
      case 'none':
        return start;
      case 'length': {
        const taken = Math.min(this.#left, end - start);
        this.#left -= taken;
        this.#onData?.(bytes, start, start + taken);
        return start + taken;
      }
      case 'chunked':
        return this.#chunks.scan(bytes, start, end);
      case 'close':
        this.#onData?.(bytes, start, end);
        return end;
    }
  }
}
