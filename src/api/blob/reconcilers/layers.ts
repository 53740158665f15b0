import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import { buildsToStore, recordLayersStored } from '../../build/store/stored.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import { type LayerDeps, storeLayer } from '../rules/layers.ts';

/** How often this runs, milliseconds: for so long the layers of a new build are on one machine alone. */
export const layerUploadIntervalMs = 5_000;
/** Builds of one round. */
const buildsMax = 20;
const beginning = { createdAtUs: -1, buildId: '' };

/**
 * What puts the layers of builds into the store, and records which builds need them: some each time. Builds take turns:
 * layers that no machine has, as those of a machine that was lost, stand in the way of no others. Why those of a build
 * can't be stored is told once, and again where that changes.
 */
export function layerKeeping(deps: LayerDeps & { log: Log; machines: Pick<Machines, 'layers'> }): () => Promise<void> {
  const { db, log, machines, store } = deps;
  let after = beginning;
  // The last turn and this one: what has been told of builds that are gone is forgotten with the next.
  let told = new Map<string, string>();
  let telling = new Map<string, string>();
  const tell = (buildId: string, error: string) => {
    if ((telling.get(buildId) ?? told.get(buildId)) !== error)
      log.warn('the layers of a build are not in the store yet', { buildId, error });
    telling.set(buildId, error);
  };
  return async () => {
    if (!store.isUsable) return;
    const builds = await buildsToStore(db, buildsMax, after);
    for (const { buildId, layers } of builds) {
      try {
        for (const digest of layers)
          await storeLayer(deps, digest, { kind: 'build', id: buildId }, () => machines.layers.holder(digest));
        await recordLayersStored(db, buildId);
      } catch (error) {
        tell(buildId, messageOf(error));
      }
    }
    after = (builds.length === buildsMax && builds.at(-1)) || beginning;
    if (after !== beginning) return;
    told = telling;
    telling = new Map();
  };
}
