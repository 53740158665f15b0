/** Numbers that look random but follow from a seed, so that every run can be repeated. */
export type Random = {
  /** A whole number from 0 up to, not including, `end` (below 2^32). */
  below(end: number): number;
  /** True once in `times`. */
  once(times: number): boolean;
  pick<T>(from: readonly T[]): T;
  bytes(count: number): Buffer;
};

/** Marsaglia's xorshift after a hash of the seed, so that neighbouring seeds have nothing in common. */
export function createRandom(seed: string | number): Random {
  let state = hashOf(String(seed)) || 1;
  const next = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
  const below = (end: number) => next() % end;
  return {
    below,
    once: times => below(times) === 0,
    pick: from => {
      const picked = from[below(from.length)];
      if (picked === undefined) throw new Error('nothing to pick from');
      return picked;
    },
    bytes(count) {
      const bytes = Buffer.alloc(count);
      for (let at = 0; at < count; at++) bytes[at] = next() >>> 8;
      return bytes;
    },
  };
}

/** 32 bits of a text or of bytes (FNV-1a with a final mix). */
export function hashOf(input: string | Uint8Array): number {
  const bytes = typeof input === 'string' ? Buffer.from(input) : input;
  let hash = 0x811c9dc5;
  for (let at = 0; at < bytes.length; at++) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
