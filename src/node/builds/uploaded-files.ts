import { existsSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import type { UploadedFiles } from './build-context.ts';

/** Archives in a directory that the api fills: `<team>/<hash>`. */
export function uploadedFilesIn(dir: string): UploadedFiles {
  return {
    path(teamId, hash) {
      // Both become parts of a path.
      if (!/^[0-9a-f]{64}$/.test(hash) || !/^[0-9A-Za-z-]+$/.test(teamId)) return undefined;
      const path = join(dir, teamId, hash);
      if (!existsSync(path)) return undefined;
      // Files that are still asked for are kept.
      utimesSync(path, new Date(), new Date());
      return path;
    },
  };
}
