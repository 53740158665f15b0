import { lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

const linksFollowedMax = 40;

/**
 * The text of a file as programs inside would read it: links are followed inside of `view` only. Undefined where there is
 * no such file, or one longer than `bytesMax`.
 */
export function readInView(view: string, path: string, bytesMax: number): string | undefined {
  const file = resolveInView(view, path);
  if (file === undefined) return undefined;
  // A pipe would block the reader for ever.
  const stat = lstatSync(file);
  return stat.isFile() && stat.size <= bytesMax ? readFileSync(file, 'utf8') : undefined;
}

/** Whether programs inside would find a file at this path. */
export function isFileInView(view: string, path: string): boolean {
  const file = resolveInView(view, path);
  return file !== undefined && lstatSync(file).isFile();
}

/** Where a path leads inside of `view`, links followed; undefined where there is nothing. */
export function resolveInView(view: string, path: string): string | undefined {
  let at: string[] = [];
  const pending = path.split('/').toReversed();
  for (let followed = 0, name; (name = pending.pop()) !== undefined; ) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      at.pop();
      continue;
    }
    const next = [...at, name];
    const stat = lstatSync(join(view, ...next), { throwIfNoEntry: false });
    if (!stat) return undefined;
    if (stat.isSymbolicLink()) {
      if (++followed > linksFollowedMax) return undefined;
      const target = readlinkSync(join(view, ...next));
      if (target.startsWith('/')) at = [];
      pending.push(...target.split('/').toReversed());
    } else at = next;
  }
  return join(view, ...at);
}
