/** A row as it is shown; `isGone`: the list has it no longer. */
export type ShownRow<T> = { row: T; isGone: boolean };

/**
 * The latest rows in the places of those that are shown, so that nothing moves under a pointer: what is gone keeps its
 * place, and what is new above the last shown row waits. Rows behind it are added, as they move nothing.
 */
export function holdPlaces<T>(
  shown: readonly T[],
  latest: readonly T[],
  keyOf: (row: T) => string,
): { rows: ShownRow<T>[]; waiting: number } {
  const now = new Map(latest.map(row => [keyOf(row), row]));
  const known = new Set(shown.map(keyOf));
  const rows = shown.map(row => ({ row: now.get(keyOf(row)) ?? row, isGone: !now.has(keyOf(row)) }));
  const behind = latest.findLastIndex(row => known.has(keyOf(row))) + 1;
  const added = latest.slice(behind).map(row => ({ row, isGone: false }));
  const waiting = latest.slice(0, behind).filter(row => !known.has(keyOf(row))).length;
  return { rows: [...rows, ...added], waiting };
}
