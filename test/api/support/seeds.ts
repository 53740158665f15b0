import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dir, '../../..');
/** Beside what set-up builds: it is made from the same source. */
const folder = join(root, 'dist/test');

/** By name, what this process has found or made. */
const seeds = new Map<string, Promise<string>>();

/**
 * The path of something that tests begin with copies of, as making it takes longer than most of them: `make` makes it
 * at the path that it gets. It is made once for all processes, and again where the API's code is another.
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
    // Whoever was faster has made the same.
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
