/** Repeats some work at a pace until a moment (of `performance.now`), and answers how long each run took, ms. */
export async function atPace(everyMs: number, until: number, work: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let due = performance.now(); due < until; due += everyMs) {
    const early = due - performance.now();
    if (early > 0) await Bun.sleep(early);
    const startedAt = performance.now();
    await work();
    times.push(performance.now() - startedAt);
  }
  return times;
}
