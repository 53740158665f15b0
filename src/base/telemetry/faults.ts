import { messageOf } from '../error.ts';
import type { Log } from './log.ts';

/** Faults of one process that are logged: a stranger who has found one must not fill the log with it. */
const faultsLoggedMax = 20;

/**
 * Has this process outlive what of its own fails where nobody catches it. Strangers' bytes lead there, and such a fault
 * costs its own connection, not everybody's. To be called once it serves: until then a fault ends its start. `name`: of
 * what serves, for the log.
 */
export function outliveFaults(log: Log, name: string): void {
  let faults = 0;
  const outlive = (fault: unknown) => {
    if (++faults > faultsLoggedMax) return;
    const error = fault instanceof Error ? (fault.stack ?? fault.message) : messageOf(fault);
    log.error(`${name} has failed at something`, { error });
  };
  process.on('uncaughtException', outlive);
  process.on('unhandledRejection', outlive);
}
