import type { BuildState } from '../../../protocol/build.ts';
import { flatten } from '../../layers/flatten.ts';
import { stackedLayersMax } from '../../layers/limits.ts';
import { cachedLayer, type CachedWork, type LayerWork } from '../build.ts';

/** The same state, with all its layers merged into one if there are too many. */
export async function flattenWhereDeep(build: CachedWork & LayerWork, state: BuildState): Promise<BuildState> {
  if (state.layers.length < stackedLayersMax) return state;
  const label = { text: `putting ${state.layers.length} layers together` };
  const flat = await cachedLayer(build, state, { kind: 'flatten', facts: stackedLayersMax, label }, () =>
    flatten(build, state.layers, build),
  );
  return { ...state, layers: flat.layers.slice(-1) };
}
