import type { Page } from 'playwright-core';

/** The value that a `share` of the numbers does not exceed. */
export function percentile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** Bytes of the heap that are still in use after a garbage collection. */
export async function heapBytes(page: Page): Promise<number> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('HeapProfiler.collectGarbage');
  const { usedSize } = await devtools.send('Runtime.getHeapUsage');
  await devtools.detach();
  return usedSize;
}

/** Times between the frames of a page, ms, during `work`. */
export async function framesDuring(page: Page, work: () => Promise<unknown>): Promise<number[]> {
  await page.evaluate(startCounting);
  await work();
  return page.evaluate<number[]>('{ const { frames } = globalThis; globalThis.frames = null; frames.slice(1) }');
}

const startCounting = `{
  const frames = (globalThis.frames = []);
  let last = performance.now();
  const look = now => {
    if (globalThis.frames !== frames) return;
    frames.push(now - last);
    last = now;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}`;
