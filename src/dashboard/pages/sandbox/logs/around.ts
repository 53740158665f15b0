/** Those of `entries` that match, and `count` before and behind each. `hits`: which of them match. */
export function around<T>(
  entries: readonly T[],
  matches: (entry: T) => boolean,
  count: number,
): { shown: T[]; hits: ReadonlySet<T> } {
  const hits = new Set(entries.filter(matches));
  const shown: T[] = [];
  /** Behind the last hit, so many are still to be shown. */
  let due = 0;
  /** What was passed over since the last that is shown, so many at most. */
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
