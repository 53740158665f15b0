import type { Layers } from '../../layers/store.ts';
import type { StepCache } from './step-cache.ts';

/** A layer younger than this may belong to something that nobody has recorded yet. */
const youngMs = 60 * 60_000;
/**
 * Something used this recently may belong to a build whose outcome is still being recorded: the bound does not apply
 * yet.
 */
const recentMs = 10 * 60_000;
/** What nobody has used for this long is deleted, even if there is room. */
const staleMs = 30 * 24 * 60 * 60_000;

/** A file that only spares later builds work. */
export type CachedFile = { bytes: number; usedAtMs: number; remove(): void };

/** What is kept, and how much of the rest. */
type CollectOptions = {
  /** Layers that templates and snapshots need. */
  keep: string[];
  /** Layers that running builds stand on. */
  needed: string[];
  /**
   * Bytes that cached steps may take if nothing else needs them, including the disks of cache mounts and uploaded
   * files.
   */
  bytesMax: number;
  /** When the oldest running build began, epoch milliseconds; undefined: none runs. What was used since then stays. */
  buildingSinceMs: number | undefined;
  files: CachedFile[];
  /** Layers among `keep` that can be had again from elsewhere. */
  replaceable: string[];
  /** Bytes that all layers of the node may take before replaceable ones are deleted, the least recently used first. */
  layerBytesMax: number;
};

/** What was deleted. */
type Collected = { layersDeleted: number; filesDeleted: number; bytesFreed: number };

/** Where this finds out which layers are needed, and which are there. */
export type CollectParts = {
  layers: Pick<Layers, 'has' | 'bytes' | 'list' | 'madeAtMs' | 'usedAtMs' | 'remove'>;
  sandboxes: {
    /** Layers of every sandbox of the node, whatever its state. */
    records(): { image: { layers: string[] } }[];
    /** Whether there is a sandbox of which nobody can say what it stands on. */
    hasUnknown(): boolean;
  };
};

/** Deletes cached things beyond the bound, the least recently used first, and layers that nothing needs. */
export async function collectCached(
  { layers, sandboxes }: CollectParts,
  cache: StepCache,
  options: CollectOptions,
): Promise<Collected> {
  const now = Date.now();
  const usedLately = Math.min(now - recentMs, options.buildingSinceMs ?? now);
  const keep = new Set([
    ...options.keep,
    ...options.needed,
    ...sandboxes.records().flatMap(({ image }) => image.layers),
  ]);
  const freed = { layersDeleted: 0, filesDeleted: 0, bytesFreed: 0 };
  const cached = new Set<string>();
  const steps = cache.list().map(step => ({ kind: 'step' as const, ...step }));
  const files = options.files.map(file => ({ kind: 'file' as const, ...file }));
  let bytes = 0;
  for (const item of [...steps, ...files].sort((a, b) => b.usedAtMs - a.usedAtMs)) {
    const stale = now - item.usedAtMs > staleMs;
    const layer = item.kind === 'step' ? item.layer : null;
    if (item.kind === 'step' && (stale || (layer !== null && !layers.has(layer)))) {
      cache.remove(item.key);
      continue;
    }
    // A layer that something needs anyway, or a step without one, costs nothing to remember.
    if (item.kind === 'step' && (layer === null || keep.has(layer) || cached.has(layer))) continue;
    const size = item.kind === 'file' ? item.bytes : layers.bytes(layer ?? '');
    if (item.usedAtMs < usedLately && (stale || bytes + size > options.bytesMax)) {
      if (item.kind === 'step') cache.remove(item.key);
      else {
        item.remove();
        freed.filesDeleted++;
        freed.bytesFreed += size;
      }
      continue;
    }
    bytes += size;
    if (layer !== null) cached.add(layer);
  }
  if (sandboxes.hasUnknown()) return freed;
  const remove = async (digest: string) => {
    const size = layers.bytes(digest);
    await layers.remove(digest);
    freed.layersDeleted++;
    freed.bytesFreed += size;
  };
  const oldest = Math.min(now - youngMs, options.buildingSinceMs ?? now);
  for (const digest of layers.list()) {
    if (keep.has(digest) || cached.has(digest) || layers.madeAtMs(digest) > oldest) continue;
    await remove(digest);
  }
  const pinned = new Set([...sandboxes.records().flatMap(({ image }) => image.layers), ...cached]);
  for (const digest of leastRecentlyUsed(layers, options, { pinned, usedLately })) await remove(digest);
  return freed;
}

/** The layers to delete, the least recently used first, when all together take too much. */
function leastRecentlyUsed(
  layers: CollectParts['layers'],
  { replaceable, layerBytesMax, needed }: Pick<CollectOptions, 'replaceable' | 'layerBytesMax' | 'needed'>,
  { pinned, usedLately }: { pinned: ReadonlySet<string>; usedLately: number },
): string[] {
  let bytes = layers.list().reduce((sum, digest) => sum + layers.bytes(digest), 0);
  const candidates = [...new Set(replaceable)]
    .filter(digest => layers.has(digest) && !pinned.has(digest) && !needed.includes(digest))
    .toSorted((a, b) => layers.usedAtMs(a) - layers.usedAtMs(b));
  const leaving: string[] = [];
  for (const digest of candidates) {
    if (bytes <= layerBytesMax || layers.usedAtMs(digest) > usedLately) break;
    leaving.push(digest);
    bytes -= layers.bytes(digest);
  }
  return leaving;
}
