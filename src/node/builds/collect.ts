import type { NodeContext } from '../context.ts';
import type { StepCache } from './step-cache.ts';

/** A layer younger than this may belong to something that nobody has recorded yet. */
const youngMs = 60 * 60_000;
/** Steps that nobody has used for so long are forgotten, whatever room there is. */
const staleMs = 30 * 24 * 60 * 60_000;

export type CollectOptions = {
  /** Layers that templates and snapshots need. */
  keep: string[];
  /** What layers that only cached steps need may take, bytes. */
  bytesMax: number;
  /** False while builds run: they use layers that nothing names yet. */
  mayDelete(): boolean;
};

/** Forgets cached steps beyond the bound, the least recently used first, and deletes layers that nothing needs. */
export async function collectLayers(node: NodeContext, cache: StepCache, options: CollectOptions): Promise<{ layersDeleted: number; bytesFreed: number }> {
  const freed = { layersDeleted: 0, bytesFreed: 0 };
  if (!options.mayDelete()) return freed;
  const { layers } = node;
  const keep = new Set(options.keep);
  for (const { record } of [...node.running.values(), ...node.paused.values()]) for (const digest of record.image.layers) keep.add(digest);
  const cached = new Set<string>();
  let bytes = 0;
  for (const step of cache.list().sort((a, b) => b.usedAtMs - a.usedAtMs)) {
    const { layer } = step;
    const stale = Date.now() - step.usedAtMs > staleMs;
    if (stale || (layer !== null && !layers.has(layer))) cache.remove(step.key);
    if (stale || layer === null || !layers.has(layer) || keep.has(layer) || cached.has(layer)) continue;
    if (bytes + layers.bytes(layer) > options.bytesMax) {
      cache.remove(step.key);
      continue;
    }
    bytes += layers.bytes(layer);
    cached.add(layer);
  }
  const oldest = Date.now() - youngMs;
  for (const digest of layers.list()) {
    if (keep.has(digest) || cached.has(digest) || layers.madeAtMs(digest) > oldest) continue;
    const size = layers.bytes(digest);
    await layers.remove(digest);
    freed.layersDeleted++;
    freed.bytesFreed += size;
  }
  return freed;
}
