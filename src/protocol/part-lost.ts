import { AtollError } from '../base/error.ts';

/** `detail` of errors of calls whose receiver could not be asked, or ended before it answered. */
const partLost = 'part_lost';

/**
 * The error for a call to a process that is away: it is started again within seconds. `detail`: tells special cases
 * apart.
 */
export function lost(part: string, what: string, detail = partLost): AtollError {
  return new AtollError('unavailable', `The platform's ${part} ${what}; try again in a moment`, {
    detail,
    retryAfterSeconds: 1,
  });
}

/**
 * Says whether the other process was away, or ended before it answered: then the call may or may not have taken effect.
 */
export function isPartLost(error: unknown): boolean {
  return error instanceof AtollError && error.detail === partLost;
}
