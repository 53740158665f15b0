import { readSync } from 'node:fs';
import type { Root } from './layer/root.ts';

/** A file as a program inside would read it; empty if it is missing or longer than the limit. */
export function readText(view: Root, path: string, bytesMax: number): string {
  const found = view.follow(path);
  const stat = found === undefined ? undefined : view.stat(found);
  if (found === undefined || !stat?.isFile() || stat.size > BigInt(bytesMax)) return '';
  using file = view.open(found);
  const bytes = Buffer.alloc(Number(stat.size));
  let length = 0;
  for (let count; (count = readSync(file.fd, bytes, length, bytes.length - length, null)) > 0;) length += count;
  return bytes.toString('utf8', 0, length);
}
