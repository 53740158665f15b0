import { existsSync, linkSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';

/** Links every layer of a data directory into the backup, so that none can be deleted during the backup. */
export function linkLayers(dataDir: string, staging: string): void {
  const [from, to] = [join(dataDir, 'node/layers'), join(staging, 'layers')];
  mkdirSync(to, { recursive: true });
  if (!existsSync(from)) return;
  for (const name of readdirSync(from)) {
    if (!name.endsWith('.erofs') || existsSync(join(to, name))) continue;
    try {
      linkSync(join(from, name), join(to, name));
    } catch (error) {
      // The layer was collected just now. If something needs it, picking the layers finds that out.
      if (existsSync(join(from, name))) throw error;
    }
  }
}

/**
 * Keeps the layers that something in the backup is made from, removes the others, and answers how many are kept. Fails
 * with `unavailable` where one is missing.
 */
export function pickLayers(dataDir: string, staging: string, needed: ReadonlySet<string>): number {
  linkLayers(dataDir, staging);
  const present = new Set(readdirSync(join(staging, 'layers')));
  for (const name of needed)
    if (!present.has(name))
      throw new AtollError(
        'unavailable',
        `The layer ${name} of a template is not in ${dataDir}; was it being deleted? Try again`,
      );
  for (const name of present) if (!needed.has(name)) rmSync(join(staging, 'layers', name));
  return needed.size;
}
