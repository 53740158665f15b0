/** `count` CIDR blocks that do not overlap, different for each `seed`. */
export function blocks(seed: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const block = (seed * 7919 + index * 2) % (80 * 65_536);
    return `${20 + Math.floor(block / 65_536)}.${Math.floor(block / 256) % 256}.${block % 256}.0/${25 + (index % 4)}`;
  });
}
