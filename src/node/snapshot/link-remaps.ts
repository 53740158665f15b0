import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { lookThrough } from './images/image-file.ts';
import { numberIn } from './images/protobuf.ts';

/** Fields and values of `remap_file_path_entry` in CRIU's images/remap-file-path.proto. */
const remap = { type: 3, linked: 0 } as const;

/**
 * Whether a dump depends on names that CRIU gave to open files without one, in the sandbox's root. CRIU removes them
 * again when the processes run on, and then the disk alone does not match the dump any more.
 */
export async function needsLinks(imagesDir: string): Promise<boolean> {
  const image = join(imagesDir, 'remap-fpath.img');
  if (!existsSync(image)) return false;
  let needs = false;
  await lookThrough(image, entry => (needs ||= numberIn(entry, remap.type) === remap.linked));
  return needs;
}
