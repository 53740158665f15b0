import { mkdirSync, statSync } from 'node:fs';
import { chmod, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AtollError, isGone } from '../base/error.ts';
import { newUuid } from '../base/id.ts';
import { syncPath } from '../base/sync.ts';
import type { BlobObject, BlobStore } from '../protocol/blob.ts';
import { explained } from './errors.ts';

/**
 * Each process of control has its own user: all of them may read and write below a folder that nobody else can enter.
 */
const everyOwner = { directory: 0o777, file: 0o666 } as const;
/** A file that is still being written has a name that nobody asks for. */
const draftSuffix = '.draft';
const draftEnd = /\.[0-9a-f-]{36}\.draft$/;
const keyForm = /^[a-z0-9][a-z0-9.-]*(\/[a-z0-9][a-z0-9.-]*)*$/i;

/**
 * A directory that every process of control sees at `path`, e.g. on a network file system. `place`: shown to operators.
 */
export function directoryStore(path: string, place = path): BlobStore {
  const fileOf = (key: string) => {
    if (!keyForm.test(key) || key.endsWith(draftSuffix)) throw new AtollError('invalid', `${key} is not a key`);
    return join(path, key);
  };
  return {
    place,
    presign: null,
    put: (key, bytes) => inPlace(place, () => write(path, fileOf(key), bytes)),
    get: key => inPlace(place, () => readFile(fileOf(key)), key),
    head: key =>
      inPlace(place, () =>
        stat(fileOf(key)).then(
          facts => (facts.isFile() ? facts.size : null),
          (error: unknown) => {
            if (!isGone(error)) throw error;
            // Where the whole directory is gone, nothing can be said about one object.
            statSync(path);
            return null;
          },
        ),
      ),
    // Also removes a draft that a crash has left.
    remove: key =>
      inPlace(place, () => rm(fileOf(key.replace(draftEnd, '')) + (draftEnd.exec(key)?.[0] ?? ''), { force: true })),
    list: prefix => list(path, place, prefix),
  };
}

/**
 * Makes the folder of a store: only root can enter it, and within it everybody may read and write. Answers the part for
 * everybody.
 */
export function prepareStoreDirectory(path: string): string {
  const shared = join(path, 'objects');
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const before = process.umask(0);
  try {
    mkdirSync(shared, { recursive: true, mode: everyOwner.directory });
  } finally {
    process.umask(before);
  }
  return shared;
}

async function inPlace<T>(place: string, work: () => Promise<T>, key?: string): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (key !== undefined && isGone(error)) throw new AtollError('not_found', `${key} is not in the store ${place}`);
    throw explained(place, error);
  }
}

/** A crash leaves the object whole or not at all; once this has answered, the object is there. */
async function write(root: string, file: string, bytes: Uint8Array): Promise<void> {
  // A missing folder is not made anew: it may be a file system that is not mounted.
  statSync(root);
  await makeFolders(root, dirname(file));
  const draft = `${file}.${newUuid()}${draftSuffix}`;
  try {
    const handle = await open(draft, 'wx', everyOwner.file);
    try {
      await handle.chmod(everyOwner.file);
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
    await syncPath(dirname(file));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function makeFolders(root: string, folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length && made !== root; made = dirname(made)) {
    await chmod(made, everyOwner.directory);
    await syncPath(dirname(made));
  }
}

async function* list(root: string, place: string, prefix: string): AsyncGenerator<BlobObject> {
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1);
  const entries = await inPlace(place, async () => {
    statSync(root);
    return readdir(join(root, folder), { recursive: true, withFileTypes: true }).catch((error: unknown) => {
      if (isGone(error)) return [];
      throw error;
    });
  });
  for (const entry of entries) {
    const file = join(entry.parentPath, entry.name);
    const key = file.slice(root.length + 1);
    if (!entry.isFile() || !key.startsWith(prefix)) continue;
    const facts = await stat(file).catch(() => undefined); // removed meanwhile
    // Files that a crash has left half written are listed too, under their own names, so that the collector removes
    // them.
    if (facts) yield { key, bytes: facts.size, changedAtMs: facts.mtimeMs };
  }
}
