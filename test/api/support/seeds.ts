import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dir, '../../..');
/** Beside what set-up builds, because it is made from the same source. */
const folder = join(root, 'dist/test');

/** What this process has found or made, by name. */
const seeds = new Map<string, Promise<string>>();

/**
 * The path of something that tests start with copies of, because making it takes longer than most of them: `make` makes
 * it at the path that it gets. It is made once for all processes, and again when the API's code has changed.
 */
export function seedOf(name: string, make: (path: string) => Promise<void>): Promise<string> {
  const seed = seeds.get(name) ?? findOrMake(name, make);
  seeds.set(name, seed);
  return seed;
}

async function findOrMake(name: string, make: (path: string) => Promise<void>): Promise<string> {
  const path = join(folder, `${name}-${digestOfApi()}`);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  for (const other of readdirSync(folder))
    if (other.startsWith(`${name}-`)) rmSync(join(folder, other), { recursive: true, force: true });
  const temporary = mkdtempSync(join(folder, 'making-'));
  try {
    await make(join(temporary, name));
    // A faster process has made the same.
    if (!existsSync(path)) renameSync(join(temporary, name), path);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  return path;
}

function digestOfApi(): string {
  const digest = createHash('sha256');
  const files = readdirSync(join(root, 'src/api'), { recursive: true, encoding: 'utf8' });
  for (const file of files.filter(name => name.endsWith('.ts')).sort())
    digest.update(readFileSync(join(root, 'src/api', file)));
  return digest.digest('hex').slice(0, 16);
}
