import { type Clock, microsPerSecond } from '../../../base/clock.ts';
import { layersInUse } from '../store/read.ts';
import { pruneSteps } from '../store/steps.ts';
import { findInstallation } from '../../database/installation.ts';
import type { BuildProtocol } from '../../../protocol/build.ts';
import { isSuspect } from '../../database/timeline.ts';
import type { Db } from '../../database/db.ts';
import type { Log } from '../../../base/telemetry/log.ts';

/** How soon following a build is tried again after a failure. */
export const buildsIntervalMs = 30_000;
/** How often this runs, milliseconds. */
export const layersIntervalMs = 10 * 60_000;
/** How long a step that nobody uses stays known in a cluster: as long as on its own machine. */
const stepSeconds = 30 * 24 * 3600;

/** Lets the builder delete what no template needs, and keeps its cache within bounds. */
export async function reconcileLayers({
  builder,
  clock,
  db,
  log,
}: {
  builder: BuildProtocol;
  clock: Clock;
  db: Db;
  log: Log;
}): Promise<void> {
  await pruneSteps(db, clock() - stepSeconds * microsPerSecond);
  if (await keepsUnknown({ clock, db })) return;
  const freed = await builder.collect(await layersInUse(db));
  if (freed.bytesFreed > 0) log.info('what builds had cached was deleted', freed);
}

/**
 * Whether things that the store does not know must stay: an operator took over a database that may lack what the nodes
 * keep, or the database went over to another server a short while ago.
 */
export async function keepsUnknown({ clock, db }: { clock: Clock; db: Db }): Promise<boolean> {
  if (((await findInstallation(db))?.acceptedAtUs ?? null) !== null) return true;
  return isSuspect(db, clock());
}
