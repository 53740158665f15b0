import { AtollError, messageOf, systemCodeOf, type ErrorCode } from '../../base/error.ts';

const codes: Record<string, ErrorCode> = {
  ENOENT: 'not_found',
  ENOTDIR: 'not_found',
  // A link that leads out of the volume, or in a circle, leads to nothing of the volume.
  EXDEV: 'not_found',
  ELOOP: 'not_found',
  EEXIST: 'conflict',
  EISDIR: 'conflict',
  ENAMETOOLONG: 'invalid',
  ENOSPC: 'no_space',
  EDQUOT: 'no_space',
  EAGAIN: 'unavailable',
};

/**
 * The meaning of a failed call for a caller that asked for `path`; anything unforeseen is `internal`. `codesHere`
 * takes precedence over the usual meanings.
 */
export function contentError(error: unknown, path: string, codesHere: Record<string, ErrorCode> = {}): AtollError {
  if (error instanceof AtollError) return error;
  const name = systemCodeOf(error);
  const code = codesHere[name] ?? codes[name] ?? 'internal';
  const words: Partial<Record<ErrorCode, string>> = {
    not_found: 'was not found in the volume',
    conflict: 'exists already',
    no_space: "can't be written: the volume is full",
    unavailable: 'is leased to a program in a sandbox; try again later',
    invalid: name === 'ENOTDIR' ? "can't be there: a parent is no directory" : 'is too long a path',
  };
  return new AtollError(code, `path: ${JSON.stringify(path)} ${words[code] ?? messageOf(error)}`, { cause: error });
}
