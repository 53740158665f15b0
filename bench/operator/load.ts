import { percentile } from '../measure/statistics.ts';

export type Load = { perSecond: number; medianMs: number; p99Ms: number };

/** Repeats `work` from `clients` sides at a time, for `seconds`. */
export async function load(
  clients: number,
  seconds: number,
  work: (client: number) => Promise<unknown>,
): Promise<Load> {
  const times: number[] = [];
  const start = performance.now();
  const end = start + seconds * 1000;
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      while (performance.now() < end) {
        const begun = performance.now();
        await work(client);
        times.push(performance.now() - begun);
      }
    }),
  );
  const tookMs = performance.now() - start;
  const sorted = times.toSorted((a, b) => a - b);
  return {
    perSecond: (times.length / tookMs) * 1000,
    medianMs: percentile(sorted, 0.5),
    p99Ms: percentile(sorted, 0.99),
  };
}

export function loadText({ perSecond, medianMs, p99Ms }: Load): string {
  return `${perSecond.toFixed(0)}/s, p50 ${medianMs.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`;
}
