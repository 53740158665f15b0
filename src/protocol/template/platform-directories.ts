import { AtollError } from '../../base/error.ts';

/** Directories of the root that every sandbox has of the platform, as native/root.c puts them in their places. */
export const platformDirectories = ['.agent', 'dev', 'proc', 'sys'] as const;

/** Refuses files of a template that have a link or a file in the place of such a directory, named as in the list. */
export function placeTaken(path: string): AtollError {
  return new AtollError(
    'invalid',
    `/${path} of the template is a link or a file: every sandbox has a directory of the platform there, so an image ` +
      'may have an empty directory there or nothing at all',
  );
}
