import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256Hex } from '../../../base/crypto/secret.ts';
import type { LayerCache } from '../../layers/shared-cache.ts';
import type { Layers } from '../../layers/store.ts';
import { readBaseRootfsDefinition } from './definition.ts';
import { makeBaseRootfsTree } from './make-tree.ts';

/** What the base rootfs is made of, and where it is kept. */
type BaseRootfsOptions = {
  layers: Layers;
  cache: LayerCache;
  /** A file with the names of distribution packages, and a folder with the npm lock file of Node.js. */
  packagesFile: string;
  npmDir: string;
  /** An archive of a root filesystem to take as it is, instead of making one. */
  imageArchive?: string | undefined;
  /** Environment for npm: it may need the caller's own settings to reach its registry. */
  npmEnvironment: Record<string, string>;
  /** Folder with Node.js, npm and yarn as npm would fetch them; without it, npm fetches them. */
  nodePackagesDir: string;
  onPhase: (phase: string) => void;
  signal?: AbortSignal | undefined;
};

/**
 * The digest of the layer that the first template of a machine stands on. Afterwards the layer is in `layers`: it
 * comes from the cache if that has one with the same content, else this machine's own package tools make it. One
 * caller at a time.
 */
export async function ensureBaseRootfs(options: BaseRootfsOptions): Promise<string> {
  const { layers, cache, onPhase } = options;
  const definition = await readBaseRootfsDefinition(options);
  const name = `base-rootfs-${(await contentKey(options, definition.digest)).slice(0, 32)}`;
  const [cached] = (await cache.take(name))?.layers ?? [];
  if (cached !== undefined) return cached;
  await removeAbandoned(cache.dir);
  const workDir = await mkdtemp(join(cache.dir, 'making-'));
  try {
    const tree = await makeBaseRootfsTree({ ...options, definition, workDir });
    onPhase('packing');
    const digest = await layers.pack(tree);
    await cache.keep(name, { layers: [digest], facts: null });
    return digest;
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
}

/** Changes with everything that decides the layer's content and is known beforehand. */
async function contentKey({ imageArchive }: BaseRootfsOptions, definition: string): Promise<string> {
  if (imageArchive === undefined) return sha256Hex(`definition\0${definition}\0${process.arch}`);
  const { size, mtimeMs } = await stat(imageArchive).catch(() => ({ size: 0, mtimeMs: 0 }));
  return sha256Hex(`image\0${imageArchive}\0${size}\0${mtimeMs}`);
}

/** Removes what a crash left half made: nobody but the caller makes anything. */
async function removeAbandoned(dir: string): Promise<void> {
  for (const name of await readdir(dir))
    if (name.startsWith('making-')) await rm(join(dir, name), { recursive: true, force: true });
}
