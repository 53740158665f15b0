/**
 * Layers above each other, lowest first, as overlay can show them: it takes none twice. Of equal ones the topmost
 * stays, which hides all that the others hold.
 */
export function stacked(digests: string[]): string[] {
  return [...new Set(digests.toReversed())].toReversed();
}
