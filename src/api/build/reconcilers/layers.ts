import { layersInUse } from '../store/read.ts';
import { findInstallation } from '../../database/installation.ts';
import type { BuildProtocol } from '../../../protocol/build.ts';
import type { Db } from '../../database/db.ts';
import type { Log } from '../../../base/telemetry/log.ts';

/** How soon a build whose follower failed is followed again. */
export const buildsIntervalMs = 30_000;
/** How often this runs, milliseconds. */
export const layersIntervalMs = 10 * 60_000;

/** Lets the builder delete what no template needs, and keeps its cache within bounds. */
export async function reconcileLayers({
  builder,
  db,
  log,
}: {
  builder: BuildProtocol;
  db: Db;
  log: Log;
}): Promise<void> {
  if (await keepsUnknown(db)) return;
  const freed = await builder.collect(await layersInUse(db));
  if (freed.bytesFreed > 0) log.info('what builds had cached was deleted', freed);
}

/**
 * Whether what the store does not know stays, because an operator took a database that may lack what the nodes keep.
 */
export async function keepsUnknown(db: Db): Promise<boolean> {
  return ((await findInstallation(db))?.acceptedAtUs ?? null) !== null;
}
