import { expect, test } from 'bun:test';
import { withRetries } from './retries.ts';

function tries(failures: number, signal = new AbortController().signal, delays = [1, 1]) {
  const seen = { builds: 0, log: [] as string[] };
  const build = async () => {
    if (++seen.builds <= failures) throw new Error('the mirror is away');
  };
  const log = { error: (text: string) => void seen.log.push(text) };
  return withRetries('the template x', build, { log, signal, delays }).then(() => seen);
}

test('a failure is tried again until it works, and each one is logged', async () => {
  expect(await tries(0)).toEqual({ builds: 1, log: [] });
  expect(await tries(2)).toEqual({
    builds: 3,
    log: Array<string>(2).fill('the template x could not be built; it is tried again in 0.001 s'),
  });
});

test('the last attempt leaves the rest to the next start', async () => {
  const { builds, log } = await tries(9);
  expect(builds).toBe(3);
  expect(log.at(-1)).toBe('the template x could not be built; the next start tries again');
});

test('once the platform stops, nothing is tried or waited for', async () => {
  expect(await tries(9, AbortSignal.abort())).toEqual({ builds: 1, log: [] });
  expect((await tries(9, AbortSignal.timeout(20), [3_600_000])).builds).toBe(1);
});
