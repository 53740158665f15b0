import type { ImageLimits } from '../../protocol/builder.ts';
import { makeLayer, type LayerMaker } from './make.ts';
import { openView, type Viewer } from './view.ts';

/**
 * Makes one layer of what a stack shows, lowest first, and answers its digest; null if it shows nothing. Errors: those
 * of a layer.
 */
export async function flatten(
  parts: LayerMaker & Viewer,
  digests: string[],
  { limits, signal }: { limits: ImageLimits; signal?: AbortSignal },
): Promise<string | null> {
  await using view = await openView(parts, digests);
  return await makeLayer(parts, {
    job: { kind: 'pack', excluded: [], marked: false, limits },
    upper: view.path,
    ...(signal && { signal }),
  });
}
