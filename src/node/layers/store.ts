import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { copyFile, link, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { assert, AtollError } from '../../base/error.ts';
import { syncPath } from '../../base/sync.ts';
import { ifThere } from '../../base/if-there.ts';
import type { Helper } from '../native/helper.ts';

const packTimeoutMs = 10 * 60_000;
/** All images have the same UUID. Equal ones differ by when they were made, which mkfs.erofs writes down. */
const imageUuid = '00000000-0000-0000-0000-000000000000';

/** Read-only layers of root file systems, each one EROFS image named by the digest of its bytes. */
export type Layers = {
  /** Packs a directory (owners as inside, 0-based) into a layer and answers its digest, `sha256:<hex>`. */
  pack(directory: string): Promise<string>;
  /**
   * Keeps the layer that `write` makes: `write` writes and syncs an image at the path that it gets and answers its
   * digest, or null for a layer that would be empty.
   */
  make(write: (image: string) => Promise<string | null>): Promise<string | null>;
  /**
   * Takes over an image that was made elsewhere: linked if the file system can, else copied. Fails with `invalid` if
   * its bytes do not match the digest; `isKnown`: they were already checked.
   */
  take(digest: string, image: string, isKnown?: boolean): Promise<void>;
  /** Unmounts and deletes a layer that nothing uses. */
  remove(digest: string): Promise<void>;
  /** Calls `letGo` before a layer is deleted, for holders of layers that nobody has asked for yet. */
  beforeRemoval(letGo: (digest: string) => Promise<void>): void;
  /** Where the layer's image is. */
  imagePath(digest: string): string;
  has(digest: string): boolean;
  bytes(digest: string): number;
  /** When the layer was last used since this process began, else when it came to this node. Epoch milliseconds. */
  usedAtMs(digest: string): number;
  /** Marks a layer as used: somebody is about to begin with it. */
  touch(digest: string): void;
  /** When the layer came to this node, epoch milliseconds. */
  madeAtMs(digest: string): number;
  /** The layer's mount point in the helper's namespace; it stays mounted. Fails with `not_found`. */
  mount(digest: string): Promise<string>;
  list(): string[];
};

/** Opens the layers in `dir`. Their mount points are below `mounts`, in the helper's mount namespace. */
export function createLayers(options: { helper: Helper; dir: string; mounts: string }): Layers {
  const { helper, dir } = options;
  mkdirSync(dir, { recursive: true });
  for (const name of readdirSync(dir))
    if (name.startsWith('making-')) rmSync(join(dir, name), { recursive: true, force: true });
  const mounted = new Map<string, Promise<string>>();
  const usedAtMs = new Map<string, number>();
  const holders: ((digest: string) => Promise<void>)[] = [];
  const imageOf = (digest: string) => join(dir, `${hexOf(digest)}.erofs`);

  const mountLayer = async (digest: string): Promise<string> => {
    const image = imageOf(digest);
    if (!existsSync(image)) throw new AtollError('not_found', `layer ${digest} is not on this node`);
    const point = join(options.mounts, 'layers', hexOf(digest));
    mkdirSync(point, { recursive: true });
    await helper.call('layer-mount', { image, at: point });
    return point;
  };

  /** An image gets its name once `write`, which answers its digest, is done. */
  const make: Layers['make'] = async write => {
    const temporary = await mkdtemp(join(dir, 'making-'));
    try {
      const image = join(temporary, 'image');
      const digest = await write(image);
      if (digest === null) return null;
      renameSync(image, imageOf(digest));
      await syncPath(dir);
      return digest;
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
  };

  return {
    make,
    pack: directory => packed(make(image => packDirectory(helper, directory, image))),
    beforeRemoval: letGo => void holders.push(letGo),
    async remove(digest) {
      for (const letGo of holders) await letGo(digest);
      const point = await mounted.get(digest)?.catch(() => undefined);
      mounted.delete(digest);
      usedAtMs.delete(digest);
      if (point !== undefined) await helper.call('unmount', { at: point });
      await removeImage(dir, imageOf(digest));
    },
    async take(digest, image, isKnown = false) {
      if (existsSync(imageOf(digest))) return;
      await make(async own => {
        await linkOrCopy(image, own);
        if (!isKnown && (await digestOf(own)) !== digest)
          throw new AtollError('invalid', `what came is not layer ${digest}`, { fields: { image } });
        return digest;
      });
    },
    imagePath: imageOf,
    has: digest => existsSync(imageOf(digest)),
    bytes: digest => statSync(imageOf(digest)).size,
    madeAtMs: digest => statSync(imageOf(digest)).ctimeMs,
    usedAtMs: digest => usedAtMs.get(digest) ?? statSync(imageOf(digest)).ctimeMs,
    touch: digest => void usedAtMs.set(digest, Date.now()),
    mount(digest) {
      usedAtMs.set(digest, Date.now());
      const known = mounted.get(digest);
      if (known) return known;
      const mounting = mountLayer(digest);
      mounted.set(digest, mounting);
      mounting.catch(() => mounted.delete(digest));
      return mounting;
    },
    list: () => digestsIn(dir),
  };
}

async function packed(making: Promise<string | null>): Promise<string> {
  const digest = await making;
  assert(digest !== null, 'a packed directory has a digest');
  return digest;
}

function digestsIn(dir: string): string[] {
  return readdirSync(dir)
    .filter(name => name.endsWith('.erofs'))
    .map(name => `sha256:${name.slice(0, -'.erofs'.length)}`);
}

/** Writes and syncs an image of a directory, and answers its digest. */
async function packDirectory(helper: Helper, directory: string, image: string): Promise<string> {
  const { status, output } = await helper.spawn(['mkfs.erofs', '--quiet', '-U', imageUuid, image, directory], {
    timeoutMs: packTimeoutMs,
    kind: 'ahead',
  });
  if (status !== 0) throw new AtollError('internal', `mkfs.erofs failed: ${output.trim()}`);
  await syncPath(image);
  return digestOf(image);
}

function hexOf(digest: string): string {
  const hex = /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1];
  if (!hex) throw new AtollError('invalid', `${digest} is not a layer digest`);
  return hex;
}

/** Gives a file a second name; makes a synced copy if the names are on different file systems. */
export async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    await copyFile(from, to);
    await syncPath(to);
  }
}

/** The digest of a layer's image. */
export async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(part as Buffer);
  return `sha256:${hash.digest('hex')}`;
}

/**
 * Renames the image first, so that nobody finds it. The host's disk takes its time to free a large one; nobody waits.
 */
async function removeImage(dir: string, image: string): Promise<void> {
  const doomed = await mkdtemp(join(dir, 'making-'));
  ifThere(() => renameSync(image, join(doomed, 'image')), undefined);
  await rm(doomed, { recursive: true });
}
