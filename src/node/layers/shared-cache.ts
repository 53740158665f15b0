import { closeSync, mkdirSync, openSync } from 'node:fs';
import { readFile, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SingleFlight } from '../../base/concurrency/single-flight.ts';
import { AtollError, systemCodeOf } from '../../base/error.ts';
import { libc } from '../native/libc.ts';
import { type Layers, linkOrCopy } from './store.ts';

/** Older entries are made anew: their packages have had security updates since. */
const ageMsMax = 30 * 24 * 3_600_000;
const lockPollMs = 200;
const LOCK_EX_NB = 2 | 4;

type Entry = { layers: string[]; facts: unknown };

/** Stacks of layers that took long to make, kept for other installations of the machine. May be deleted at any time. */
export type LayerCache = {
  /** The folder, for work on the same file system. */
  dir: string;
  /**
   * Puts the entry's layers into the installation's and answers the entry; undefined if there is no complete and
   * recent one.
   */
  take(name: string): Promise<Entry | undefined>;
  keep(name: string, entry: Entry): Promise<void>;
  /** Puts one layer into the installation's; false if there is no complete one here. */
  takeLayer(digest: string): Promise<boolean>;
  /**
   * Until it is disposed of, no other installation holds this name's lock; the kernel frees it however the process
   * ends.
   */
  lock(name: string, onWait: () => void, signal: AbortSignal | undefined): Promise<Disposable>;
};

/** Opens the cache in `dir`, which is made if it is missing. Layers that it provides go into `layers`. */
export function openLayerCache(dir: string, layers: Layers): LayerCache {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const manifest = (name: string) => join(dir, `${named(name)}.json`);
  const imageOf = (digest: string) => join(dir, `${digest.replace(':', '-')}.erofs`);
  const taking = new SingleFlight<string, boolean>();
  // A copy that was cut short does not match the digest in its name; it is replaced.
  const takeLayer = (digest: string) =>
    taking.run(digest, () =>
      takeLookedAt(layers, digest, imageOf(digest)).then(
        () => true,
        () => false,
      ),
    );
  return {
    dir,
    async take(name) {
      const entry = await readEntry(manifest(name));
      if (!entry) return undefined;
      const taken = await Promise.all(entry.layers.map(takeLayer));
      return taken.every(Boolean) ? entry : undefined;
    },
    takeLayer,
    async keep(name, entry) {
      for (const digest of entry.layers) {
        // Refuses what is not a digest before it becomes part of a path.
        const own = layers.imagePath(digest);
        await rm(imageOf(digest), { force: true });
        await linkOrCopy(own, imageOf(digest));
        // The time of the link counts: the image must not look abandoned before the entry names it.
        await utimes(imageOf(digest), new Date(), new Date());
      }
      await writeFile(`${manifest(name)}.new`, JSON.stringify(entry), { mode: 0o600 });
      await rename(`${manifest(name)}.new`, manifest(name));
      await removeUnused(dir, imageOf);
    },
    lock: (name, onWait, signal) => lockFile(join(dir, `${named(name)}.lock`), onWait, signal),
  };
}

/**
 * Takes an image whose bytes are checked once for all installations: checking the lowest layer of a usual template
 * costs each first start a second. A note beside the image says which file was checked.
 */
async function takeLookedAt(layers: Layers, digest: string, image: string): Promise<void> {
  if (layers.has(digest)) return;
  const note = noteOf(image);
  const { ino, size, mtimeMs } = await stat(image);
  const facts = `${ino} ${size} ${mtimeMs}`;
  const isKnown = (await readFile(note, 'utf8').catch(() => '')) === facts;
  await layers.take(digest, image, isKnown);
  // Without the note, the next installation checks the bytes again.
  if (!isKnown) await writeFile(note, facts, { mode: 0o600 }).catch(() => {});
}

/** The name becomes part of root's path, and the process that asks may have been taken over. */
function named(name: string): string {
  if (/^\w[\w.-]*$/.test(name)) return name;
  throw new AtollError('invalid', `${name} is not the name of an entry`);
}

const noteOf = (image: string) => `${image}.whole`;

async function readEntry(path: string): Promise<Entry | undefined> {
  try {
    const { mtimeMs } = await stat(path);
    return Date.now() - mtimeMs < ageMsMax ? (JSON.parse(await readFile(path, 'utf8')) as Entry) : undefined;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT' || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Removes entries that are too old, and images that no entry has named for a while. */
async function removeUnused(dir: string, imageOf: (digest: string) => string): Promise<void> {
  const graceMs = 3_600_000;
  const used = new Set<string>();
  const names = await readdir(dir);
  for (const name of names.filter(each => each.endsWith('.json'))) {
    const entry = await readEntry(join(dir, name));
    if (entry) entry.layers.forEach(digest => used.add(imageOf(digest)));
    else await rm(join(dir, name), { force: true });
  }
  for (const path of names.filter(each => each.endsWith('.erofs')).map(name => join(dir, name))) {
    const found = used.has(path) ? undefined : await stat(path).catch(() => undefined);
    if (found && Date.now() - found.mtimeMs > graceMs)
      for (const unused of [path, noteOf(path)]) await rm(unused, { force: true });
  }
}

async function lockFile(path: string, onWait: () => void, signal: AbortSignal | undefined): Promise<Disposable> {
  const fd = openSync(path, 'w', 0o600);
  let isWaiting = false;
  try {
    while (libc.flock(fd, LOCK_EX_NB) < 0) {
      signal?.throwIfAborted();
      if (!isWaiting) onWait();
      isWaiting = true;
      await Bun.sleep(lockPollMs);
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return { [Symbol.dispose]: () => closeSync(fd) };
}
