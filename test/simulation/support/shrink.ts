/** Most runs for one failure. */
const runsMax = 400;

/**
 * Leaves out as many of `count` actions as it can while `fails` still answers a failure, whole stretches first and
 * single ones last. Answers those left out, and the last failure.
 */
export async function shrink<T>(
  count: number,
  first: T,
  fails: (leftOut: ReadonlySet<number>) => Promise<T | undefined>,
): Promise<{ leftOut: ReadonlySet<number>; failure: T }> {
  let [leftOut, failure, runs] = [new Set<number>(), first, 0];
  for (let length = Math.ceil(count / 2); length > 0 && runs < runsMax; length = Math.floor(length / 2)) {
    for (let from = 0; from < count && runs < runsMax; from += length) {
      const more = new Set(leftOut);
      for (let action = from; action < Math.min(from + length, count); action++) more.add(action);
      if (more.size === leftOut.size) continue;
      runs++;
      const found = await fails(more);
      if (found !== undefined) [leftOut, failure] = [more, found];
    }
  }
  return { leftOut, failure };
}
