import { lstat, readdir } from 'node:fs/promises';

/** An entry of a directory. `name` has one character per byte. */
type DirectoryEntry = { name: string; isDirectory: boolean };

const replacement = '\ufffd';

/** The entries of a directory, with names byte by byte. Empty if it can't be read: it may just have gone. */
export async function readEntries(path: Buffer): Promise<DirectoryEntry[]> {
  // When it also reads the kinds, Bun decodes names as UTF-8: if a name isn't, each entry is examined instead.
  const entries = await readdir(path.toString(), { withFileTypes: true }).catch(() => []);
  if (!path.includes(replacement) && entries.every(entry => !entry.name.includes(replacement))) {
    return entries.map(entry => ({
      name: Buffer.from(entry.name).toString('latin1'),
      isDirectory: entry.isDirectory(),
    }));
  }
  const names = await readdir(path, { encoding: 'buffer' }).catch(() => []);
  return Promise.all(
    names.map(async name => {
      const facts = await lstat(Buffer.concat([path, Buffer.from('/'), name])).catch(() => undefined);
      return { name: name.toString('latin1'), isDirectory: facts?.isDirectory() ?? false };
    }),
  );
}
