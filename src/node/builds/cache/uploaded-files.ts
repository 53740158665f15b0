import { lstatSync, lutimesSync } from 'node:fs';
import { join } from 'node:path';
import type { UploadedFiles } from '../build.ts';

/**
 * Archives in a directory that the api fills: `<team>/<hash>`. It is the api's: links in it are not followed, here or
 * where they are opened.
 */
export function uploadedFilesIn(dir: string): UploadedFiles {
  return {
    path(teamId, hash) {
      // Both become parts of a path.
      if (!/^[0-9a-f]{64}$/.test(hash) || !/^[0-9A-Za-z-]+$/.test(teamId)) return undefined;
      const path = join(dir, teamId, hash);
      if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) return undefined;
      // Files that are still asked for are kept.
      lutimesSync(path, new Date(), new Date());
      return path;
    },
  };
}
