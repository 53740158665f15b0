import { closeSync, constants, existsSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ArchivedFile, ArchiveHeader } from './archive.ts';
import type { Draft } from './drafts.ts';
import { extentsOf } from './extents.ts';
import { changesOf, eitherOf } from './known-pages.ts';

/** Where a draft, and what a pause keeps, has the memory; the disk has the same name as where it is kept. */
export const memoryFolder = 'memory';
/** Whether a file has pages of memory. */
export const isPages = (path: string) => /^memory\/pages-\d+\.img$/.test(path);

/** The same archive without what the draft already contains. `kept` is the folder of the files. */
export async function sinceDraft<Content>(
  header: ArchiveHeader<Content>,
  kept: string,
  { draftId, folder, known }: Draft,
): Promise<ArchiveHeader<Content>> {
  const files: ArchivedFile[] = [];
  for (const file of header.files) {
    const from = join(kept, file.path);
    const same = join(folder, file.path);
    if (isPages(file.path) && known) files.push({ ...file, ...(await known.split(from)) });
    else if (file.path.startsWith(`${memoryFolder}/`) || !isOfSize(same, file.sizeBytes)) files.push(file);
    else files.push({ ...file, isDrafted: true, extents: await changed(from, same, file) });
  }
  return { ...header, draft: { draftId, files: pagesIn(folder) }, files };
}

/** The files of a draft with pages of memory, as its archive names them. */
export const pagesIn = (folder: string) =>
  readdirSync(join(folder, memoryFolder))
    .map(name => join(memoryFolder, name))
    .filter(isPages)
    .toSorted();

const isOfSize = (path: string, bytes: number) => existsSync(path) && statSync(path).size === bytes;

/** The parts of a disk that differ from its draft. */
async function changed(path: string, draft: string, { sizeBytes, extents }: ArchivedFile): Promise<[number, number][]> {
  const fd = openSync(draft, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return await changesOf(path, draft, eitherOf(extents, extentsOf(fd, sizeBytes)));
  } finally {
    closeSync(fd);
  }
}
