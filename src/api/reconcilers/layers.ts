import type { App } from '../app/context.ts';
import { layersInUse } from '../store/build-read.ts';

/** How soon a build whose follower failed is followed again. */
export const buildsIntervalMs = 30_000;
export const layersIntervalMs = 10 * 60_000;

/** Lets the builder delete what no template needs, and keeps its cache within bounds. */
export async function reconcileLayers(app: App): Promise<void> {
  const freed = await app.builder.collect(await layersInUse(app.store.db));
  if (freed.bytesFreed > 0) app.log.info('what builds had cached was deleted', freed);
}
