import { lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

const linksFollowedMax = 40;

/**
 * The text of a file as programs inside would read it: links are followed inside of `view` only. Undefined where there is
 * no such file, or one longer than `bytesMax`.
 */
export function readInView(view: string, path: string, bytesMax: number): string | undefined {
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
  const file = join(view, ...at);
  // A pipe would block the reader for ever.
  const stat = lstatSync(file);
  return stat.isFile() && stat.size <= bytesMax ? readFileSync(file, 'utf8') : undefined;
}
