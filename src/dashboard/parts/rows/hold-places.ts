/** A row as it is shown; `isGone`: the list no longer has it. */
export type ShownRow<T> = { row: T; isGone: boolean };

/**
 * The latest rows in the places of the shown ones, so that nothing moves under a pointer: gone rows keep their place,
 * and new rows above the last shown one wait. Rows after it are added, since they move nothing.
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
