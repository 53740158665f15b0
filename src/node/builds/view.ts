import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeContext } from '../context.ts';

/** What a sandbox made from some layers would see, read-only, at a path of the helper's mount namespace. */
export type View = AsyncDisposable & { path: string };

export async function openView(node: NodeContext, layers: string[]): Promise<View> {
  const points = await Promise.all(layers.map(digest => node.layers.mount(digest)));
  // An overlay needs two layers where it has no place to write to.
  const [only] = points;
  if (points.length === 1 && only !== undefined) return { path: only, [Symbol.asyncDispose]: async () => {} };
  mkdirSync(node.layout.mounts, { recursive: true });
  const point = mkdtempSync(join(node.layout.mounts, 'view-'));
  const dispose = async () => {
    await node.helper.call('unmount', point);
    rmSync(point, { recursive: true, force: true });
  };
  try {
    await node.helper.call('view', point, ...points);
  } catch (error) {
    rmSync(point, { recursive: true, force: true });
    throw error;
  }
  return { path: point, [Symbol.asyncDispose]: dispose };
}
