import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** SHA-256 over the names and contents of files and folders, and any further text that the output depends on. */
export function digestOf(paths, more = '') {
  const hash = createHash('sha256').update(more);
  for (const file of paths.flatMap(filesOf).sort()) hash.update(`${file}\0`).update(readFileSync(file));
  return hash.digest('hex');
}

function filesOf(path) {
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [path];
  return readdirSync(path).flatMap(name => filesOf(join(path, name)));
}

/** Whether `file` was made from what `digest` names: `madeFrom` says so after the file is whole. */
export function isMadeFrom(file, digest) {
  return existsSync(file) && existsSync(`${file}.from`) && readFileSync(`${file}.from`, 'utf8') === digest;
}

export function markMadeFrom(file, digest) {
  writeFileSync(`${file}.from`, digest);
}
