import { AtollError, messageOf, type ErrorCode } from '../../base/error.ts';

/** The name of a system call's error, e.g. `ENOENT`. */
export function errnoOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

const codes: Record<string, ErrorCode> = {
  ENOENT: 'not_found',
  // A component of the path is no directory, so there is nothing at the path.
  ENOTDIR: 'not_found',
  ENAMETOOLONG: 'invalid',
  ELOOP: 'precondition',
  EISDIR: 'invalid',
  EINVAL: 'invalid',
  EFBIG: 'invalid',
  EACCES: 'forbidden',
  EPERM: 'forbidden',
  EROFS: 'forbidden',
  EBUSY: 'precondition',
  ETXTBSY: 'precondition',
  ENOSPC: 'no_space',
  EDQUOT: 'no_space',
};

const noSpace = (path: string) => `no space left to write '${path}'`;
const forbidden = (path: string) => `path '${path}' can't be changed: the sandbox's kernel forbids it`;
const inUse = (path: string) => `path '${path}' is in use: it is being run or is a mount point`;

/** Messages for the caller; other errors keep the runtime's. */
const texts: Record<string, (path: string) => string> = {
  ENOENT: path => `path '${path}' not found`,
  ENOTDIR: path => `path '${path}' goes through something that is not a directory`,
  ELOOP: path => `path '${path}' goes through too many links`,
  ENAMETOOLONG: path => `path '${path}' is longer than 4095 bytes, or a name in it than 255`,
  ENOTEMPTY: path => `path '${path}' is a directory that is not empty`,
  EXDEV: path => `path '${path}' is on another file system, where a move can't go: copy it`,
  EISDIR: path => `path '${path}' is a directory`,
  ENXIO: path => `path '${path}' is a pipe, socket or device that nobody has opened`,
  EACCES: forbidden,
  EIO: path => `path '${path}' can't be written or read`,
  EPERM: forbidden,
  EROFS: path => `path '${path}' is on a file system that is read-only`,
  EBUSY: inUse,
  ETXTBSY: inUse,
  ENOSPC: noSpace,
  EDQUOT: noSpace,
};

/**
 * The caller's error for a failed file operation; anything unforeseen is `internal`. `codesHere` takes precedence over
 * the usual meaning.
 */
export function fileError(error: unknown, path: string, codesHere: Record<string, ErrorCode> = {}): AtollError {
  if (error instanceof AtollError) return error;
  const errno = errnoOf(error);
  const code = (errno === undefined ? undefined : (codesHere[errno] ?? codes[errno])) ?? 'internal';
  const text = (errno === undefined ? undefined : texts[errno]?.(path)) ?? `'${path}': ${messageOf(error)}`;
  return new AtollError(code, text, { cause: error });
}
