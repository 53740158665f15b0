import { type Field, headBytes } from './head-bytes.ts';
import { Fields } from './fields.ts';

const lastChunk = Buffer.from('0\r\n');
const endOfSection = Buffer.from('\r\n');

/** Collects the trailers of a chunked body, which `BodyReader` locates. */
export class Trailers {
  readonly #fieldsMax: number;
  #pieces: Buffer[] = [];

  constructor(fieldsMax: number) {
    this.#fieldsMax = fieldsMax;
  }

  /** Takes more of them. The bytes may change after the call; the scanner bounds their number. */
  take(bytes: Uint8Array, start: number, end: number): void {
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)));
  }

  /** Answers the fields once the body is whole, and forgets them. Undefined if there are more fields than allowed. */
  read(): Field[] | undefined {
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    const fields = new Fields(this.#fieldsMax);
    return fields.parse(bytes, 0, bytes.length) > 0 ? fields.all() : undefined;
  }
}

/** The end of a chunked body: the last chunk, the trailers, and the empty line. */
export function bodyEndBytes(trailers: readonly Field[]): Buffer {
  if (trailers.length === 0) return Buffer.concat([lastChunk, endOfSection]);
  // Like a head, without the start line.
  const head = headBytes('', trailers);
  return Buffer.concat([lastChunk, head.subarray(endOfSection.length)]);
}
