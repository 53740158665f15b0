/** Bytes of one line, without its end. */
const lineBytesMax = 64 << 10;

/** Splits pieces into lines. Throws if a line is longer than any that our agent sends. */
export function createLineReader(onLine: (line: string) => void): (piece: Uint8Array) => void {
  let begun = Buffer.alloc(0);
  let begunBytes = 0;
  // However small the pieces are, each byte is looked at once.
  const add = (piece: Buffer) => {
    const bytes = begunBytes + piece.length;
    if (bytes > lineBytesMax) throw new Error('the agent sent too long a line');
    if (bytes > begun.length) begun = Buffer.concat([begun.subarray(0, begunBytes)], Math.min(bytes * 2, lineBytesMax));
    piece.copy(begun, begunBytes);
    begunBytes = bytes;
  };
  return piece => {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    let from = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
      add(bytes.subarray(from, end));
      onLine(begun.toString('utf8', 0, begunBytes));
      begunBytes = 0;
      from = end + 1;
    }
    add(bytes.subarray(from));
  };
}
