import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import { buildsToStore, recordLayersStored } from '../../build/store/stored.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import { type LayerDeps, storeLayer } from '../rules/layers.ts';

/** How often this runs, milliseconds: for so long the layers of a new build are on one machine alone. */
export const layerUploadIntervalMs = 5_000;
/** Builds of one round. */
const buildsMax = 20;

/** Puts the layers of builds into the store, and records which builds need them. */
export async function storeBuildLayers(deps: LayerDeps & { log: Log; machines: Machines }): Promise<void> {
  const { db, log, machines, store } = deps;
  if (!store.isUsable) return;
  for (const { buildId, layers } of await buildsToStore(db, buildsMax)) {
    try {
      for (const digest of layers)
        await storeLayer(deps, digest, { kind: 'build', id: buildId }, () => machines.layers.holder(digest));
      await recordLayersStored(db, buildId);
    } catch (error) {
      // Others may have theirs in reach.
      log.warn('the layers of a build are not in the store yet', { buildId, error: messageOf(error) });
    }
  }
}
