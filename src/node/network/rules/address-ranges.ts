import type { Block } from '../../../protocol/network/network.ts';

/**
 * Covers the blocks' addresses of one family by the fewest ranges that do not touch, each `first-last` or a single
 * address, ascending.
 */
export function rangesOf(blocks: Block[], version: Block['version']): string[] {
  const ranges = blocks
    .filter(block => block.version === version)
    .map(block => rangeOf(block))
    .sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0));
  const merged: { first: bigint; last: bigint }[] = [];
  for (const range of ranges) {
    const before = merged.at(-1);
    if (!before || range.first > before.last + 1n) merged.push({ ...range });
    else if (range.last > before.last) before.last = range.last;
  }
  const written = version === 4 ? dotted : grouped;
  return merged.map(({ first, last }) => (first === last ? written(first) : `${written(first)}-${written(last)}`));
}

function rangeOf(block: Block): { first: bigint; last: bigint } {
  const hostBits = BigInt(block.octets.length * 8 - block.bits);
  const address = block.octets.reduce((sum, octet) => (sum << 8n) | BigInt(octet), 0n);
  const first = (address >> hostBits) << hostBits;
  return { first, last: first + (1n << hostBits) - 1n };
}

function dotted(address: bigint): string {
  return [24n, 16n, 8n, 0n].map(shift => (address >> shift) & 255n).join('.');
}

/** All eight groups of an address. */
function grouped(address: bigint): string {
  return (address.toString(16).padStart(32, '0').match(/.{4}/g) ?? []).join(':');
}
