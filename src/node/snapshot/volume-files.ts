import { renameSync } from 'node:fs';
import { rewriteImage } from './images/image-file.ts';
import { messageIn, textIn, withMessages } from './images/protobuf.ts';

/** Field of `file_entry` in CRIU's images/fdinfo.proto that holds a regular file. */
const regularFile = 3;
/** Fields of `reg_file_entry` in CRIU's images/regfile.proto. */
const file = { name: 6, size: 8 } as const;

/**
 * Lets the open files of volumes have another size when a checkpoint is restored: others may have written to them
 * meanwhile, as to any open file of a shared file system. `volumes` are mount points. Answers how many files are open
 * there.
 */
export async function allowOtherSizes(filesImage: string, volumes: string[]): Promise<number> {
  if (volumes.length === 0) return 0;
  let count = 0;
  const changed = `${filesImage}.changed`;
  await rewriteImage(filesImage, changed, entry => {
    const fields = messageIn(entry, regularFile);
    const path = fields ? textIn(fields, file.name) : '';
    if (!fields || !volumes.some(point => path.startsWith(`${point}/`))) return entry;
    count++;
    return withMessages(entry, regularFile, open => open.filter(({ number }) => number !== file.size));
  });
  renameSync(changed, filesImage);
  return count;
}
