import { existsSync, linkSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';

/** Links every layer of a data directory into the backup: then nobody deletes them under our hands. */
export function linkLayers(dataDir: string, staging: string): void {
  const [from, to] = [join(dataDir, 'node/layers'), join(staging, 'layers')];
  mkdirSync(to, { recursive: true });
  if (!existsSync(from)) return;
  for (const name of readdirSync(from)) {
    if (!name.endsWith('.erofs') || existsSync(join(to, name))) continue;
    try {
      linkSync(join(from, name), join(to, name));
    } catch (error) {
      // It was collected just now: if somebody needed it, that is found when they are picked.
      if (existsSync(join(from, name))) throw error;
    }
  }
}

/**
 * Leaves the layers that something in the backup is made from, and answers how many. Fails with `unavailable` where one
 * is missing.
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
