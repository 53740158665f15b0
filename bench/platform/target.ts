import { startPlatform } from '../../test/support/platform.ts';
import type { Target } from './client.ts';
import { limitTeams } from './team-limits.ts';

/** A whole platform for the bench, on its own data directory. Disposing of it removes it and its sandboxes. */
export async function startTarget(options: {
  /** Standby sandboxes; undefined: the machine's default. */
  poolSize?: number;
  env?: Record<string, string>;
}): Promise<Target & AsyncDisposable> {
  const platform = await startPlatform({ ATOLL_POOL_SIZE: String(options.poolSize ?? ''), ...options.env });
  const { url, apiKey, dataDir } = platform.ready;
  // A measuring client sends requests as fast as it can.
  await limitTeams({ url, dataDir }, { requestsPerSecond: 0 });
  return {
    url,
    apiKey,
    dataDir,
    get pid() {
      return platform.ready.pid;
    },
    async crashAndRestart() {
      await platform.kill9();
      await platform.restart();
    },
    [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose](),
  };
}
