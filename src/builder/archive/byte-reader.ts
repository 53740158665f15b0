import { AtollError } from '../../base/error.ts';

/** Reads a stream in pieces of the reader's choice. */
export type ByteReader = {
  /** The next `count` bytes; undefined at the stream's end. Fails with `invalid` if the stream ends within them. */
  read(count: number): Promise<Uint8Array | undefined>;
  /** Passes on the next `count` bytes as they come, without joining them. */
  forward(count: number, take: (part: Uint8Array) => void): Promise<void>;
  /** Bytes read so far. */
  position(): number;
};

/** Reads `source` from its beginning, holding one chunk in memory. */
export function createByteReader(source: AsyncIterable<Uint8Array>): ByteReader {
  const iterator = source[Symbol.asyncIterator]();
  let rest: Uint8Array = new Uint8Array(0);
  let position = 0;
  /** False at the end. */
  const more = async (): Promise<boolean> => {
    const next = await iterator.next();
    if (next.done) return false;
    rest = next.value;
    return true;
  };
  const forward = async (count: number, take: (part: Uint8Array) => void) => {
    for (let left = count; left > 0;) {
      if (rest.length === 0 && !(await more()))
        throw new AtollError('invalid', 'the archive ends in the middle of an entry');
      const part = rest.subarray(0, left);
      rest = rest.subarray(part.length);
      left -= part.length;
      position += part.length;
      if (part.length > 0) take(part);
    }
  };
  return {
    forward,
    position: () => position,
    async read(count) {
      while (rest.length === 0) if (!(await more())) return undefined;
      const whole = new Uint8Array(count);
      let filled = 0;
      await forward(count, part => {
        whole.set(part, filled);
        filled += part.length;
      });
      return whole;
    },
  };
}
