import { AtollError } from '../base/error.ts';

/** Marks errors of calls whose answerer could not be asked, or ended before it answered: `detail` of the error. */
const partLost = 'part_lost';

/**
 * The error for a call to a process that is not there: it is started again within seconds. `detail`: what more is to be
 * told apart.
 */
export function lost(part: string, what: string, detail = partLost): AtollError {
  return new AtollError('unavailable', `The platform's ${part} ${what}; try again in a moment`, {
    detail,
    retryAfterSeconds: 1,
  });
}

/** Says whether the other process was away, or ended before it answered: the call may have taken effect or not. */
export function isPartLost(error: unknown): boolean {
  return error instanceof AtollError && error.detail === partLost;
}
