import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readImage } from './image-file.ts';
import { numberIn } from './protobuf.ts';

/** Fields and values of `remap_file_path_entry` in CRIU's images/remap-file-path.proto. */
const remap = { type: 3, linked: 0 } as const;

/**
 * Whether a dump relies on names that CRIU gave to open files without one, in the sandbox's root. It takes them away
 * again when the processes go on, and the disk alone is then not what belongs to the dump.
 */
export function needsLinks(imagesDir: string): boolean {
  const image = join(imagesDir, 'remap-fpath.img');
  return existsSync(image) && readImage(image).some(entry => numberIn(entry, remap.type) === remap.linked);
}
