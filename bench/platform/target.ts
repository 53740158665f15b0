import { startPlatform } from '../../test/support/platform.ts';
import type { Target } from './client.ts';
import { limitTeams } from './team-limits.ts';

/** A whole platform for the bench, on a data directory of its own. Disposing removes it and its sandboxes. */
export async function startTarget(options: {
  /** Standby sandboxes; undefined: as many as the machine has where nobody says so. */
  poolSize?: number;
  env?: Record<string, string>;
}): Promise<Target & AsyncDisposable> {
  const platform = await startPlatform({ ATOLL_POOL_SIZE: String(options.poolSize ?? ''), ...options.env });
  const { url, apiKey, dataDir } = platform.ready;
  // A client that measures asks as often as it can.
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
