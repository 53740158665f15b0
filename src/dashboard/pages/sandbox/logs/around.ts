/** The matching `entries`, and `count` before and after each. `hits`: those that match. */
export function around<T>(
  entries: readonly T[],
  matches: (entry: T) => boolean,
  count: number,
): { shown: T[]; hits: ReadonlySet<T> } {
  const hits = new Set(entries.filter(matches));
  const shown: T[] = [];
  /** How many entries after the last hit are still to be shown. */
  let due = 0;
  /** Entries skipped since the last shown one, at most `count`. */
  let passed: T[] = [];
  for (const entry of entries) {
    if (hits.has(entry)) {
      shown.push(...passed, entry);
      [passed, due] = [[], count];
    } else if (due > 0) {
      shown.push(entry);
      due--;
    } else {
      passed.push(entry);
      if (passed.length > count) passed.shift();
    }
  }
  return { shown, hits };
}
