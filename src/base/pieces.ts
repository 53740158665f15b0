/**
 * The same bytes in pieces of `size`, but for the last; at least one, which may be empty. Each is a buffer of its
 * own.
 */
export async function* inPieces(source: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  let count = 0;
  for await (const piece of source) {
    for (let rest = piece; rest.length > 0;) {
      const taken = rest.subarray(0, size - bytes);
      waiting.push(taken);
      bytes += taken.length;
      rest = rest.subarray(taken.length);
      if (bytes < size) continue;
      count++;
      yield Buffer.concat(waiting);
      waiting = [];
      bytes = 0;
    }
  }
  if (bytes > 0 || count === 0) yield Buffer.concat(waiting);
}
