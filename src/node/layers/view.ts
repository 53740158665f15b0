import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Helper } from '../native/helper.ts';
import type { Layers } from './store.ts';

/** What a sandbox made from some layers would see, read-only, at a path of the helper's mount namespace. */
type View = AsyncDisposable & { path: string };

/** What showing layers needs. */
export type Viewer = {
  layers: Pick<Layers, 'mount'>;
  helper: Pick<Helper, 'call'>;
  /** `mounts`: the folder of mount points. */
  layout: { mounts: string };
};

/** Shows layers, lowest first, until it is disposed of. Errors: `not_found` for one that is not on the node. */
export async function openView({ layers, helper, layout }: Viewer, digests: string[]): Promise<View> {
  const points = await Promise.all(digests.map(digest => layers.mount(digest)));
  // An overlay without a place to write to needs two layers.
  const [only] = points;
  if (points.length === 1 && only !== undefined) return { path: only, [Symbol.asyncDispose]: async () => {} };
  mkdirSync(layout.mounts, { recursive: true });
  const point = mkdtempSync(join(layout.mounts, 'view-'));
  const dispose = async () => {
    await helper.call('unmount', { at: point });
    rmSync(point, { recursive: true, force: true });
  };
  try {
    await helper.call('view', { at: point, layers: points });
  } catch (error) {
    rmSync(point, { recursive: true, force: true });
    throw error;
  }
  return { path: point, [Symbol.asyncDispose]: dispose };
}
