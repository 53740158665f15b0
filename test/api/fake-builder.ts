import { parseDockerfile } from '../../src/builder/dockerfile/parse.ts';
import type { BuildProtocol } from '../../src/protocol/build.ts';

/** A builder whose builds run until they are cancelled. */
export function endlessBuilder(): BuildProtocol {
  const running = new Set<string>();
  return {
    readDockerfile: async text => parseDockerfile(text),
    async start({ buildId }) {
      running.add(buildId);
    },
    async progress(buildId, after, waitMs) {
      await Bun.sleep(Math.min(waitMs, 200));
      if (running.has(buildId)) return { entries: [], next: after };
      return { entries: [], next: after, result: { status: 'error', message: 'cancelled' } };
    },
    async cancel(buildId) {
      running.delete(buildId);
    },
    async forget() {},
    async collect() {
      return { layersDeleted: 0, filesDeleted: 0, bytesFreed: 0 };
    },
    layerBytes: async () => ({}),
  };
}
