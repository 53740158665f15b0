import { AtollError } from '../../base/error.ts';

/** Directories that the platform puts into every sandbox's root: native/root.c puts them in place. */
export const platformDirectories = ['.agent', 'dev', 'proc', 'sys'] as const;

/** The error for a template whose files have a link or file in place of such a directory, named as in the list. */
export function placeTaken(path: string): AtollError {
  return new AtollError(
    'invalid',
    `/${path} of the template is a link or a file: every sandbox has a directory of the platform there, so an image ` +
      'may have an empty directory there or nothing at all',
  );
}
