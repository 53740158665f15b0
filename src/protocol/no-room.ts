import { AtollError, systemCodeOf } from '../base/error.ts';

/** `detail` of errors that say a machine has no room, by what it has promised or by its own answer. */
export const nodeFull = 'sandbox_capacity_unavailable';

/** Says whether a sandbox found no room, the reserve of the machine's disk included. Other machines may have room. */
export function saysFull(error: unknown): error is AtollError {
  return error instanceof AtollError && (error.detail === nodeFull || error.detail === 'disk_reserve');
}

/**
 * What is used up, of a process or of the machine, when a system call fails like this. The shortage passes. Source:
 * errno(3).
 */
const usedUp = [
  { code: 'EAGAIN', errno: 11, what: 'processes' },
  { code: 'ENOMEM', errno: 12, what: 'memory' },
  { code: 'ENFILE', errno: 23, what: 'descriptors' },
  { code: 'EMFILE', errno: 24, what: 'descriptors' },
] as const;
const usedUpInWords = /Resource temporarily unavailable|Cannot allocate memory|Too many open files/;

/** The error for a failed system call, given by name or number, that means something is used up. */
export function shortageOf(failure: string | number, message: string, cause?: unknown): AtollError | undefined {
  const found = usedUp.find(({ code, errno }) => code === failure || errno === failure);
  return (
    found &&
    new AtollError('unavailable', `${message}: this machine has no more ${found.what} for it now`, {
      detail: nodeFull,
      cause,
    })
  );
}

/**
 * Whatever was thrown as an `AtollError`, if it is one or says that something is used up. If the undoing failed as
 * well, this is the first failure, which may have left something behind.
 */
export function toKnown(error: unknown): AtollError | undefined {
  if (error instanceof AtollError) return error;
  // A system call's message names paths of the host: it becomes the cause, which is for the log.
  if (!(error instanceof SuppressedError)) return shortageOf(systemCodeOf(error), 'it can’t be done', error);
  const first = toKnown(error.suppressed);
  if (!first) return undefined;
  const { code, message, detail, fields, retryAfterSeconds, forLog } = first;
  return new AtollError(code, message, {
    fields,
    forLog,
    mayHaveChanged: true,
    cause: error,
    ...(detail !== undefined && { detail }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
}

/** Says whether a program's last words tell that something was used up. */
export const tellsShortage = (words: string): boolean => usedUpInWords.test(words);
