import type { Random } from './random.ts';

/**
 * Cuts bytes into pieces as a connection might bring them: byte by byte, at one place, or at several. Never into empty
 * ones.
 */
export function cutIntoPieces(bytes: Buffer, random: Random): Buffer[] {
  if (bytes.length < 2) return bytes.length === 0 ? [] : [bytes];
  const cuts = random.once(4) && bytes.length < 2048 ? bytes.length - 1 : 1 + random.below(Math.min(6, bytes.length));
  const everywhere = cuts === bytes.length - 1;
  const places = everywhere
    ? [...bytes.keys()].slice(1)
    : Array.from({ length: cuts }, () => 1 + random.below(bytes.length - 1)).sort((a, b) => a - b);
  const edges = [...new Set([0, ...places, bytes.length])];
  return edges.slice(1).map((end, index) => bytes.subarray(edges[index] ?? 0, end));
}

/**
 * The same as a stream, for parsers that read one. They only iterate over it, and a million real streams would take an
 * hour.
 */
export function streamOf(pieces: readonly Uint8Array[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return iterate(pieces) as unknown as ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** The same for parsers that iterate. Each piece is a copy: nobody may rely on the bytes behind it. */
export async function* iterate(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Uint8Array.from(piece);
}
