import { ApiFailure } from '../api/client.ts';
import { folderOf, nameOf } from './paths.ts';
import type { FileStore } from './store.ts';

/** The `paths`, relative to a folder, at which a file exists already. Reads each folder on the way once. */
export async function existingOf(
  store: Pick<FileStore, 'list'>,
  folder: string,
  paths: readonly string[],
): Promise<string[]> {
  const below = Map.groupBy(paths, path => path.split('/', 1)[0] ?? '');
  const found: string[] = [];
  for (const entry of await entriesOf(store, folder)) {
    const these = below.get(entry.name) ?? [];
    if (these.includes(entry.name) && !entry.isFolder) found.push(entry.name);
    const rests = these.filter(path => path !== entry.name).map(path => path.slice(entry.name.length + 1));
    if (rests.length > 0)
      found.push(...(await existingOf(store, entry.path, rests)).map(path => `${entry.name}/${path}`));
  }
  return found;
}

/** The content of a folder; empty if it does not exist. */
async function entriesOf(store: Pick<FileStore, 'list'>, folder: string) {
  try {
    return await store.list(folder);
  } catch (error) {
    // The first file creates the folder; if something else has its name, writing reports that.
    if (error instanceof ApiFailure && error.status >= 400 && error.status < 500) return [];
    throw error;
  }
}

/** Whether there is anything at a path. */
export const isThere = async (store: Pick<FileStore, 'list'>, path: string): Promise<boolean> =>
  (await entriesOf(store, folderOf(path))).some(({ name }) => name === nameOf(path));
