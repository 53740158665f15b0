import { posix } from 'node:path';

/** `path` as seen from directory `base`, never above the root. A `/` at its end stays, because it means a directory. */
export function joinPath(base: string, path: string): string {
  const joined = withoutSlash(posix.normalize(path.startsWith('/') ? path : `/${base}/${path}`));
  const isDirectory = path.endsWith('/') || path === '.' || path.endsWith('/.');
  return isDirectory && joined !== '/' ? `${joined}/` : joined;
}

/** The same directory without the trailing slash. */
export function withoutSlash(path: string): string {
  let end = path.length;
  while (end > 1 && path[end - 1] === '/') end--;
  return path.slice(0, end);
}
