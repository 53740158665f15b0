import { startPlatform } from '../../test/support/platform.ts';
import type { Target } from './client.ts';

/** A whole platform for the bench, on a data directory of its own. Disposing removes it and its sandboxes. */
export async function startTarget(options: { poolSize: number }): Promise<Target & AsyncDisposable> {
  const platform = await startPlatform({ ATOLL_POOL_SIZE: String(options.poolSize) });
  const { url, apiKey, pid } = platform.ready;
  return { url, apiKey, pid, [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose]() };
}
