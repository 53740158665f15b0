import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** What the base template contains, as the files of its folder (`templates/base`) say. */
export type BaseDefinition = {
  /** Distribution packages, in the order of the file. */
  packages: string[];
  /** Path of the script that runs inside the finished tree. */
  provisionScript: string;
  /** Folder with the npm lock file of Node.js, npm and yarn. */
  npmDir: string;
  /** SHA-256 over every file of the folder: changes when anything of the definition does. */
  digest: string;
};

export async function readBaseDefinition(dir: string): Promise<BaseDefinition> {
  const packages = parsePackages(await readFile(join(dir, 'packages.txt'), 'utf8'));
  return { packages, provisionScript: join(dir, 'provision.sh'), npmDir: join(dir, 'npm'), digest: await digestOf(dir) };
}

/** Package names of a list with one a line; `#` starts a comment. */
export function parsePackages(text: string): string[] {
  const lines = text.split('\n').map(line => line.replace(/#.*/, '').trim());
  return lines.filter(line => line !== '');
}

async function digestOf(dir: string): Promise<string> {
  const hash = createHash('sha256');
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name));
  for (const file of files.sort()) {
    const content = await readFile(file);
    hash.update(`${relative(dir, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}
