import { AtollError, messageOf, type ErrorCode } from '../../base/error.ts';

/** The name of a system call's error, e.g. `ENOENT`. */
export function errnoOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

const codes: Record<string, ErrorCode> = {
  ENOENT: 'not_found',
  // Something on the way is no directory, so there is nothing at the path.
  ENOTDIR: 'not_found',
  ENAMETOOLONG: 'invalid',
  ELOOP: 'precondition',
  ENOSPC: 'no_space',
  EDQUOT: 'no_space',
};

/** What a failed file operation means to the caller; anything unforeseen is `internal`. `codesHere` wins over the usual meaning. */
export function fileError(error: unknown, path: string, codesHere: Record<string, ErrorCode> = {}): AtollError {
  if (error instanceof AtollError) return error;
  const errno = errnoOf(error);
  const code = (errno === undefined ? undefined : (codesHere[errno] ?? codes[errno])) ?? 'internal';
  const texts: Partial<Record<ErrorCode, string>> = {
    not_found: `path '${path}' not found`,
    precondition: `path '${path}' goes through too many links`,
    no_space: `no space left to write '${path}'`,
  };
  return new AtollError(code, texts[code] ?? `'${path}': ${messageOf(error)}`, { cause: error });
}
