import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Layout } from '../layout.ts';

/** Where builds keep files that live no longer than the build. */
export function scratchDirOf({ data }: Pick<Layout, 'data'>): string {
  return join(data, 'build-scratch');
}

/** Empties the directory: a crash may have left something there. */
export function clearScratch(layout: Pick<Layout, 'data'>): string {
  const dir = scratchDirOf(layout);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return dir;
}
