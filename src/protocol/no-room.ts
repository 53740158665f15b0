import { AtollError, systemCodeOf } from '../base/error.ts';

/** Marks errors for want of room on a machine, by what it has promised or by what it says itself: `detail` of them. */
export const nodeFull = 'sandbox_capacity_unavailable';

/** Says whether there is no room for a sandbox, the reserve of a machine's disk included. Others may have some. */
export function saysFull(error: unknown): error is AtollError {
  return error instanceof AtollError && (error.detail === nodeFull || error.detail === 'disk_reserve');
}

/** What is used up where a system call fails like this: of a process or of the machine. It passes. Source: errno(3). */
const usedUp = [
  { code: 'EAGAIN', errno: 11, what: 'processes' },
  { code: 'ENOMEM', errno: 12, what: 'memory' },
  { code: 'ENFILE', errno: 23, what: 'descriptors' },
  { code: 'EMFILE', errno: 24, what: 'descriptors' },
] as const;
const usedUpInWords = /Resource temporarily unavailable|Cannot allocate memory|Too many open files/;

/** The error for a failed system call, by its name or number, that says of something that it is used up. */
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
 * Whatever was thrown as an `AtollError`, where it is one or says that something is used up. Where the undoing failed
 * as well, it is the first failure, of which something may be left.
 */
export function toKnown(error: unknown): AtollError | undefined {
  if (error instanceof AtollError) return error;
  // The words of a system call name paths of the host: they are the cause, which is for the log.
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

/** Whether a program says in its last words that something was used up. */
export const tellsShortage = (words: string): boolean => usedUpInWords.test(words);
