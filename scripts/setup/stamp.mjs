import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/**
 * SHA-256 over the names and contents of files and folders, and any further text that the output depends on. For parts
 * of a release, file names are relative to `root`, so that the digest does not depend on where the checkout is.
 */
export function digestOf(paths, more = '', root = '') {
  const hash = createHash('sha256').update(more);
  for (const file of paths.flatMap(filesOf).sort())
    hash.update(`${root === '' ? file : relative(root, file)}\0`).update(readFileSync(file));
  return hash.digest('hex');
}

function filesOf(path) {
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [path];
  return readdirSync(path).flatMap(name => filesOf(join(path, name)));
}

/** Whether `file` was made from the sources of `digest`: `madeFrom` records that once the file is complete. */
export function isMadeFrom(file, digest) {
  return existsSync(file) && existsSync(`${file}.from`) && readFileSync(`${file}.from`, 'utf8') === digest;
}

export function markMadeFrom(file, digest) {
  writeFileSync(`${file}.from`, digest);
}
