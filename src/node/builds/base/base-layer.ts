import { closeSync, mkdirSync, openSync } from 'node:fs';
import { mkdtemp, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256Hex } from '../../../base/secret.ts';
import { libc } from '../../native/libc.ts';
import { type Layers, linkOrCopy } from '../../rootfs/layers.ts';
import { readBaseDefinition } from './definition.ts';
import { makeBaseTree } from './make-base.ts';

/** A layer in the cache older than this is made anew: its packages have had security updates since. */
const cacheAgeMsMax = 30 * 24 * 3_600_000;
const lockPollMs = 200;
const LOCK_EX_NB = 2 | 4;

export type BaseLayerOptions = {
  layers: Layers;
  /** Folder of the definition, `templates/base`. */
  definitionDir: string;
  /** An archive of a root filesystem to take as it is, instead of making one. */
  imageArchive?: string | undefined;
  /** Where a layer once made is kept for other installations of this machine. */
  cacheDir: string;
  /** Environment for npm: it may need the caller's own settings to reach its registry. */
  npmEnvironment: Record<string, string>;
  onPhase: (phase: string) => void;
  signal?: AbortSignal | undefined;
};

/**
 * Answers the digest of the base template's layer, which is in `layers` afterwards: from the cache where one of the same
 * definition is there, else made. Installations that ask at the same time make it once.
 */
export async function ensureBaseLayer(options: BaseLayerOptions): Promise<string> {
  const { layers, cacheDir, onPhase } = options;
  mkdirSync(cacheDir, { recursive: true, mode: 0o700 });
  const image = join(cacheDir, `base-${(await cacheKey(options)).slice(0, 32)}.erofs`);
  using _ = await lockFile(join(cacheDir, 'lock'), () => onPhase('waiting for another installation that makes it'), options.signal);
  const cached = await cachedDigest(image);
  if (cached !== undefined) {
    // A copy that was cut short has other bytes than its name says; it is replaced.
    const taken = await layers.take(cached, image).then(() => true, () => false);
    if (taken) return cached;
  }
  const workDir = await mkdtemp(join(cacheDir, 'making-'));
  try {
    await removeAbandoned(cacheDir, workDir);
    const tree = await makeBaseTree({ ...options, workDir });
    onPhase('packing');
    const digest = await layers.seal(tree);
    await rm(image, { force: true });
    await linkOrCopy(layers.imagePath(digest), image);
    await writeFile(`${image}.new`, digest);
    await rename(`${image}.new`, `${image}.digest`);
    return digest;
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
}

/** Changes with everything that decides about the layer's content and that we can know beforehand. */
async function cacheKey(options: BaseLayerOptions): Promise<string> {
  if (options.imageArchive !== undefined) {
    const { size, mtimeMs } = await stat(options.imageArchive).catch(() => ({ size: 0, mtimeMs: 0 }));
    return sha256Hex(`image\0${options.imageArchive}\0${size}\0${mtimeMs}`);
  }
  return sha256Hex(`definition\0${(await readBaseDefinition(options.definitionDir)).digest}\0${process.arch}`);
}

async function cachedDigest(image: string): Promise<string | undefined> {
  try {
    const digest = await readFile(`${image}.digest`, 'utf8');
    const { mtimeMs } = await stat(`${image}.digest`);
    return Date.now() - mtimeMs < cacheAgeMsMax ? digest : undefined;
  } catch {
    return undefined;
  }
}

/** What a crash left half made. The lock is held: nobody else is making anything. */
async function removeAbandoned(cacheDir: string, own: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    const path = join(cacheDir, name);
    if (name.startsWith('making-') && path !== own) await rm(path, { recursive: true, force: true });
  }
}

/** Holds the lock of a file until disposed; the kernel frees it however the process ends. */
async function lockFile(path: string, onWait: () => void, signal: AbortSignal | undefined): Promise<Disposable> {
  const fd = openSync(path, 'w', 0o600);
  let told = false;
  try {
    while (libc.flock(fd, LOCK_EX_NB) < 0) {
      signal?.throwIfAborted();
      if (!told) onWait();
      told = true;
      await Bun.sleep(lockPollMs);
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return { [Symbol.dispose]: () => closeSync(fd) };
}
