import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import { buildsToStore, recordLayersStored } from '../../build/store/stored.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import { type LayerDeps, storeLayer } from '../rules/layers.ts';

/** How often this runs, milliseconds: until then the layers of a new build are on one machine alone. */
export const layerUploadIntervalMs = 5_000;
/** Builds of one round. */
const buildsMax = 20;
const beginning = { createdAtUs: -1, buildId: '' };

/**
 * Puts the layers of builds into the store, some each time, and records which builds need them. Builds take turns, so
 * that layers that no machine has, as after the loss of a machine, don't hold up other builds. It logs once why a
 * build's layers can't be stored, and again when the reason changes.
 */
export function layerKeeping(deps: LayerDeps & { log: Log; machines: Pick<Machines, 'layers'> }): () => Promise<void> {
  const { db, log, machines, store } = deps;
  let after = beginning;
  // Reasons logged in the last turn and this one: reasons of builds that are gone are forgotten at the next turn.
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
