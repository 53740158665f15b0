/** A name below a folder. */
export const joinPath = (folder: string, name: string): string => `${folder === '/' ? '' : folder}/${name}`;

/** Each folder on the way to a path, the root first. */
export function stepsOf(path: string): { name: string; path: string }[] {
  const names = path.split('/').filter(name => name !== '');
  return [
    { name: '/', path: '/' },
    ...names.map((name, index) => ({ name, path: `/${names.slice(0, index + 1).join('/')}` })),
  ];
}

/** The folder that a path is in. */
export const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/';

/** The last name of a path. */
export const nameOf = (path: string): string => path.split('/').at(-1) ?? path;
