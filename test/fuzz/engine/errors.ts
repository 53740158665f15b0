import { AtollError, type ErrorCode } from '../../../src/base/error.ts';

/** The result of the work, or the code of the error that it is documented to throw. Any other error fails the run. */
export function valueOrCode<T>(work: () => T, codes: readonly ErrorCode[]): { value: T } | { code: ErrorCode } {
  try {
    return { value: work() };
  } catch (error) {
    return { code: codeOf(error, codes) };
  }
}

/** The same for asynchronous work. */
export async function resultOrCode<T>(
  work: () => Promise<T>,
  codes: readonly ErrorCode[],
): Promise<{ value: T } | { code: ErrorCode }> {
  try {
    return { value: await work() };
  } catch (error) {
    return { code: codeOf(error, codes) };
  }
}

function codeOf(error: unknown, codes: readonly ErrorCode[]): ErrorCode {
  if (error instanceof AtollError && codes.includes(error.code)) return error.code;
  throw error;
}
