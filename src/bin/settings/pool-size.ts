/** Standby sandboxes that any machine keeps unless configured otherwise. */
const usualSize = 4;
/** A roomy machine keeps more: it spends a thirtieth of its memory on creates that may come together. */
const roomy = { memoryBytesEach: 256 * 2 ** 20, max: 96 } as const;

/** How many standby sandboxes a machine with this much memory keeps: the `asked` number, or what suits it. */
export function poolSizeFor(asked: number | undefined, memoryBytes: number): { size: number; roomySize?: number } {
  if (asked !== undefined) return { size: asked };
  return { size: usualSize, roomySize: Math.min(Math.floor(memoryBytes / roomy.memoryBytesEach), roomy.max) };
}
