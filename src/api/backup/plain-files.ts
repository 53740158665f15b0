import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { systemCodeOf } from '../../base/error.ts';
import { plainFiles, uploadedFiles } from './places.ts';

/** The name of an uploaded archive is its digest; during the upload more follows after that. */
const uploadedName = /^[0-9a-f]{64}$/;

/** Copies files that nobody writes in place and, of the uploads, those that are complete, as they come and go. */
export function copyPlainFiles(dataDir: string, staging: string): void {
  for (const name of plainFiles)
    if (name !== uploadedFiles && existsSync(join(dataDir, name))) copyAll(join(dataDir, name), join(staging, name));
  const [from, to] = [join(dataDir, uploadedFiles), join(staging, uploadedFiles)];
  if (!existsSync(from)) return;
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    if (!uploadedName.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    const copy = join(to, relative(from, path));
    mkdirSync(dirname(copy), { recursive: true, mode: 0o700 });
    try {
      copyAll(path, copy);
    } catch (error) {
      // It was removed just now, because nobody needs it any more.
      if (systemCodeOf(error) !== 'ENOENT' || existsSync(path)) throw error;
    }
  }
}

function copyAll(from: string, to: string): void {
  cpSync(from, to, { recursive: true, preserveTimestamps: true, dereference: true });
}
