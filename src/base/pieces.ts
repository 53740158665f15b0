/**
 * The same bytes in pieces of `size`, except the last; at least one piece, which may be empty. Each has its own buffer.
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

/**
 * The same in two buffers by turns: a piece is valid until the next but one is requested. This saves allocating memory
 * for each piece.
 */
export async function* inLentPieces(source: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let [present, other] = [Buffer.allocUnsafeSlow(size), Buffer.allocUnsafeSlow(size)];
  let bytes = 0;
  let count = 0;
  for await (const piece of source) {
    for (let rest = piece; rest.length > 0;) {
      const taken = rest.subarray(0, size - bytes);
      present.set(taken, bytes);
      bytes += taken.length;
      rest = rest.subarray(taken.length);
      if (bytes < size) continue;
      count++;
      yield present;
      [present, other] = [other, present];
      bytes = 0;
    }
  }
  if (bytes > 0 || count === 0) yield present.subarray(0, bytes);
}
