import type { App } from '../app/context.ts';
import { layersInUse } from '../store/build-read.ts';
import { findInstallation } from '../store/installation.ts';

/** How soon a build whose follower failed is followed again. */
export const buildsIntervalMs = 30_000;
export const layersIntervalMs = 10 * 60_000;

/** Lets the builder delete what no template needs, and keeps its cache within bounds. */
export async function reconcileLayers(app: App): Promise<void> {
  if (await keepsUnknown(app)) return;
  const freed = await app.builder.collect(await layersInUse(app.store.db));
  if (freed.bytesFreed > 0) app.log.info('what builds had cached was deleted', freed);
}

/** Whether what the store does not know stays, because an operator took a database that may lack what the nodes keep. */
export async function keepsUnknown(app: App): Promise<boolean> {
  return ((await findInstallation(app.store.db))?.acceptedAtUs ?? null) !== null;
}
