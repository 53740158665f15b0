import type { BuildState } from '../../protocol/build.ts';
import { cachedLayer, type BuildContext } from './build-context.ts';
import { makeLayer } from './make-layer.ts';
import { openView } from './view.ts';

/** From here on a stack of layers becomes one: a sandbox's root takes at most 128, and snapshots add to them. */
const layersMax = 64;

/** The same state with all its layers put together into one where there are too many. */
export async function flattenWhereDeep(context: BuildContext, state: BuildState): Promise<BuildState> {
  if (state.layers.length < layersMax) return state;
  const flat = await cachedLayer(context, state, { kind: 'flatten', facts: layersMax, label: `putting ${state.layers.length} layers together` }, async () => {
    await using view = await openView(context.node, state.layers);
    return await makeLayer(context.node, { job: { kind: 'seal', excluded: [], marked: false, limits: context.limits }, upper: view.path, signal: context.signal });
  });
  return { ...state, layers: flat.layers.slice(-1) };
}
