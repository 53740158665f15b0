/** Summary of a series of measured durations, ms. */
export type Summary = { count: number; min: number; median: number; p99: number; max: number };

/** The value below which the given share of the sorted values lies; nearest rank. */
export function percentile(sorted: number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN;
}

export function summarize(valuesMs: number[]): Summary {
  const sorted = [...valuesMs].sort((a, b) => a - b);
  return {
    count: sorted.length,
    min: sorted[0] ?? Number.NaN,
    median: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    max: sorted.at(-1) ?? Number.NaN,
  };
}

/** Runs `work` `count` times, one after another, and answers how long each took, ms. */
export async function timeEach(count: number, work: (index: number) => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index++) {
    const start = performance.now();
    await work(index);
    times.push(performance.now() - start);
  }
  return times;
}

/** Number of resamples for an interval. */
const samples = 2000;

/**
 * The 95 % confidence interval of the ratio of two series' medians, by bootstrap: both are resampled with replacement,
 * by a sequence that is the same each time.
 */
export function intervalOfRatio(series: number[], beside: number[]): { low: number; high: number } {
  let state = 1;
  // Park and Miller's generator: small, and good enough to choose indexes.
  const next = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const median = (values: number[]) =>
    summarize(Array.from(values, () => values[Math.floor(next() * values.length)] ?? Number.NaN)).median;
  const ratios = Array.from({ length: samples }, () => median(series) / median(beside)).sort((a, b) => a - b);
  return { low: percentile(ratios, 0.025), high: percentile(ratios, 0.975) };
}
