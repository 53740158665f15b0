import { constants, lstatSync, readdirSync, rmSync, type Stats } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ifThere } from '../../../base/if-there.ts';
import type { Layout } from '../../layout.ts';
import { openBeneath, openTop } from '../../volumes/beneath.ts';
import { cacheMountsDirOf } from './cache-mounts.ts';
import type { CachedFile } from './collect.ts';

/** After this long, an upload that has not become a file will never become one. */
const unfinishedMs = 24 * 60 * 60_000;

/** What builds keep in files beside their layers: the disks of cache mounts, and archives uploaded for COPY steps. */
export function cachedFilesOf(layout: Pick<Layout, 'data'>, uploadsDir: string): CachedFile[] {
  // The directory belongs to the api, which could put links in it; root does the removing.
  const teams = namesIn(uploadsDir)
    .map(name => join(uploadsDir, name))
    .filter(path => statOf(path)?.isDirectory());
  const uploads = teams.flatMap(team => namesIn(team).map(name => join(team, name)));
  const disks = namesIn(cacheMountsDirOf(layout)).map(name => join(cacheMountsDirOf(layout), name));
  return [...uploads, ...disks].flatMap(path => {
    const found = statOf(path);
    if (!found?.isFile()) return [];
    const isUnfinished = !/^[0-9a-f]+(\.img)?$/.test(path.slice(path.lastIndexOf('/') + 1));
    // A sparse disk counts only the blocks that it takes.
    return [
      {
        bytes: found.blocks * 512,
        usedAtMs: isUnfinished && Date.now() - found.mtimeMs > unfinishedMs ? 0 : found.mtimeMs,
        remove: () => removeFile(path),
      },
    ];
  });
}

/** None if nothing was put there yet, or if `dir` is a file. */
function namesIn(dir: string): string[] {
  return ifThere(() => readdirSync(dir), []);
}

function statOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

/** Removes a file; does nothing if its directory has meanwhile become a link. */
function removeFile(path: string): void {
  const directory = dirname(path);
  using top = openTop(dirname(directory));
  using opened = openBeneath(top, basename(directory), constants.O_DIRECTORY | constants.O_NOFOLLOW);
  rmSync(join(opened.path, basename(path)), { force: true });
}
