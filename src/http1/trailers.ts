import { type Field, headBytes } from './head-bytes.ts';
import { Fields } from './fields.ts';

const lastChunk = Buffer.from('0\r\n');
const endOfSection = Buffer.from('\r\n');

/** Collects the fields behind a body in chunks, as `BodyReader` tells where they are. */
export class Trailers {
  readonly #fieldsMax: number;
  #pieces: Buffer[] = [];

  constructor(fieldsMax: number) {
    this.#fieldsMax = fieldsMax;
  }

  /** Some more of them. The bytes may change after the call; how many there can be, the scanner bounds. */
  take(bytes: Uint8Array, start: number, end: number): void {
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)));
  }

  /** The fields, once the body is whole, and forgets them. Undefined where there are more than the most. */
  read(): Field[] | undefined {
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    const fields = new Fields(this.#fieldsMax);
    return fields.parse(bytes, 0, bytes.length) > 0 ? fields.all() : undefined;
  }
}

/** The end of a body in chunks: the last chunk, the fields behind it, and the empty line. */
export function bodyEndBytes(trailers: readonly Field[]): Buffer {
  if (trailers.length === 0) return Buffer.concat([lastChunk, endOfSection]);
  // As of a head, without the line that begins it.
  const head = headBytes('', trailers);
  return Buffer.concat([lastChunk, head.subarray(endOfSection.length)]);
}
