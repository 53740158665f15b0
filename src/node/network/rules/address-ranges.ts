import type { Block } from '../../../protocol/network/network.ts';

/** The IPv4 addresses of the blocks as the fewest ranges that do not touch, each `first-last`, ascending. */
export function ipv4Ranges(blocks: Block[]): string[] {
  const ranges = blocks
    .filter(block => block.version === 4)
    .map(block => rangeOf(block))
    .sort((a, b) => a.first - b.first);
  const merged: { first: number; last: number }[] = [];
  for (const range of ranges) {
    const before = merged.at(-1);
    if (before && range.first <= before.last + 1) before.last = Math.max(before.last, range.last);
    else merged.push({ ...range });
  }
  return merged.map(({ first, last }) => (first === last ? dotted(first) : `${dotted(first)}-${dotted(last)}`));
}

function rangeOf(block: Block): { first: number; last: number } {
  const size = 2 ** (32 - block.bits);
  const address = block.octets.reduce((sum, octet) => sum * 256 + octet, 0);
  const first = Math.floor(address / size) * size;
  return { first, last: first + size - 1 };
}

function dotted(address: number): string {
  return [24, 16, 8, 0].map(shift => Math.floor(address / 2 ** shift) % 256).join('.');
}
