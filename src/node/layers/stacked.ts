/**
 * Layers above each other, lowest first, in a form that overlay can show: it takes no layer twice. If a layer occurs
 * twice, the topmost one stays, because it hides all that the others hold.
 */
export function stacked(digests: string[]): string[] {
  return [...new Set(digests.toReversed())].toReversed();
}
