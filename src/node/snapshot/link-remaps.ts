import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { lookThrough } from './images/image-file.ts';
import { numberIn } from './images/protobuf.ts';

/** Fields and values of `remap_file_path_entry` in CRIU's images/remap-file-path.proto. */
const remap = { type: 3, linked: 0 } as const;

/**
 * Whether a dump relies on names that CRIU gave to open files without one, in the sandbox's root. It takes them away
 * again when the processes go on, and the disk alone is then not what belongs to the dump.
 */
export async function needsLinks(imagesDir: string): Promise<boolean> {
  const image = join(imagesDir, 'remap-fpath.img');
  if (!existsSync(image)) return false;
  let needs = false;
  await lookThrough(image, entry => (needs ||= numberIn(entry, remap.type) === remap.linked));
  return needs;
}
