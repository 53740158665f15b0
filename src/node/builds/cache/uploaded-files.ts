import { lstatSync, lutimesSync } from 'node:fs';
import { join } from 'node:path';
import type { UploadedFiles } from '../build.ts';

/**
 * Archives in a directory that the api fills: `<team>/<hash>`. It belongs to the api, so links in it are not followed,
 * neither here nor where the archives are opened.
 */
export function uploadedFilesIn(dir: string): UploadedFiles {
  return {
    path(teamId, hash) {
      // Both become parts of a path.
      if (!/^[0-9a-f]{64}$/.test(hash) || !/^[0-9A-Za-z-]+$/.test(teamId)) return undefined;
      const path = join(dir, teamId, hash);
      if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) return undefined;
      // Marks the archive as used, so that it is kept while builds ask for it.
      lutimesSync(path, new Date(), new Date());
      return path;
    },
  };
}
