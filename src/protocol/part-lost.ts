import { AtollError } from '../base/error.ts';

/** Marks errors of calls whose answerer could not be asked, or ended before it answered: `detail` of the error. */
export const partLost = 'part_lost';

/** What to say when a process that is asked is not there: it is started again within seconds. */
export function lost(part: string, what: string): AtollError {
  return new AtollError('unavailable', `The platform's ${part} ${what}; try again in a moment`, { detail: partLost, retryAfterSeconds: 1 });
}

/** Whether the other process could not be asked, or ended before it answered: what was asked may have happened or not. */
export function isPartLost(error: unknown): boolean {
  return error instanceof AtollError && error.detail === partLost;
}
