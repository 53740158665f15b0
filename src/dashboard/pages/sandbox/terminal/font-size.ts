const key = 'atoll.terminal.font';
/** Sizes of the terminal's font, pixels. */
const fontPixels = { first: 13, min: 9, max: 24 } as const;

/** The size that was chosen in this browser. */
export function keptFontPixels(): number {
  const kept = Number(localStorage.getItem(key) ?? fontPixels.first);
  return Number.isInteger(kept) && kept >= fontPixels.min && kept <= fontPixels.max ? kept : fontPixels.first;
}

/** Saves a size, and answers it limited to the allowed range. */
export function keepFontPixels(wanted: number): number {
  const size = Math.min(fontPixels.max, Math.max(fontPixels.min, wanted));
  localStorage.setItem(key, String(size));
  return size;
}
