import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';

/**
 * What the lowest layer of a template is made of, as the files of the template's folder say: the part that comes from
 * this machine's own sources.
 */
export type BaseRootfsDefinition = {
  /** Distribution packages, in the order of the file. */
  packages: string[];
  /** Folder with the npm lock file of Node.js, npm and yarn. */
  npmDir: string;
  /** SHA-256 over everything that the layer is made of. */
  digest: string;
};

/** Reads `packagesFile` (one name a line) and takes the lock files in `npmDir`. */
export async function readBaseRootfsDefinition({
  packagesFile,
  npmDir,
}: {
  packagesFile: string;
  npmDir: string;
}): Promise<BaseRootfsDefinition> {
  const packages = parsePackages(await readFile(packagesFile, 'utf8'));
  const digest = createHash('sha256')
    .update(packages.join('\n'))
    .update(await digestOfFolder(npmDir))
    .digest('hex');
  return { packages, npmDir, digest };
}

/** Package names of a list with one a line; `#` starts a comment. */
export function parsePackages(text: string): string[] {
  const lines = text.split('\n').map(line => line.replace(/#.*/, '').trim());
  return lines.filter(line => line !== '');
}

/** SHA-256 over the names and contents of all files of a folder, hex. */
export async function digestOfFolder(dir: string): Promise<string> {
  const hash = createHash('sha256');
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name));
  for (const file of files.sort()) {
    // Running the files leaves these beside them; they are not part of the definition.
    if (file.includes('__pycache__')) continue;
    const content = await readFile(file);
    hash.update(`${relative(dir, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}
