/** Standby sandboxes that any machine keeps where nobody says how many. */
const usualSize = 4;
/** And how many while it has room: a thirtieth of its memory is spent on those who may come together. */
const roomy = { memoryBytesEach: 256 * 2 ** 20, max: 96 } as const;

/** How many standby sandboxes a machine with so much memory keeps: `asked` for, or as suits it. */
export function poolSizeFor(asked: number | undefined, memoryBytes: number): { size: number; roomySize?: number } {
  if (asked !== undefined) return { size: asked };
  return { size: usualSize, roomySize: Math.min(Math.floor(memoryBytes / roomy.memoryBytesEach), roomy.max) };
}
