import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { systemCodeOf } from '../../base/error.ts';
import { plainFiles, uploadedFiles } from './places.ts';

/** The file name of an archive, its digest; while it is uploaded, its name goes on behind that. */
const uploadedName = /^[0-9a-f]{64}$/;

/** Files that nobody writes in place are copied, and of uploads those that are whole, as they come and go. */
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
      // One that is needed no more has just been removed.
      if (systemCodeOf(error) !== 'ENOENT' || existsSync(path)) throw error;
    }
  }
}

function copyAll(from: string, to: string): void {
  cpSync(from, to, { recursive: true, preserveTimestamps: true, dereference: true });
}
