import { messageOf } from '../error.ts';
import type { Log } from './log.ts';

/** Faults that one process logs: a stranger who has found one must not fill the log with it. */
const faultsLoggedMax = 20;

/**
 * Keeps this process alive when an error of its own is caught nowhere. Strangers' bytes can cause one, and such a fault
 * should cost its own connection, not everybody's. Call it once the process serves: until then a fault ends its start.
 * `name`: of what serves, for the log.
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
