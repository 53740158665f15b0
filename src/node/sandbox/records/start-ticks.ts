import { readFileSync } from 'node:fs';
import { AtollError, isGone } from '../../../base/error.ts';
import type { ProcessPlace } from './record.ts';

/**
 * When a process started, in clock ticks since boot; undefined if there is no such process. Throws if that can't be
 * found out: taking a living process for dead would remove its sandbox. Source: proc(5), stat field 22.
 */
function startTicksOf(pid: number): number | undefined {
  const stat = readStat(pid);
  if (stat === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // A process that only waits to be reaped has ended: its namespaces are gone.
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : Number(fields[19]);
}

/** Identifies the first process `pid` of a slot, for its record. Errors: `internal` if it has ended. */
export function placeOf(slot: { number: number }, pid: number): ProcessPlace {
  const startTicks = startTicksOf(pid);
  if (startTicks === undefined) throw new AtollError('internal', 'the sandbox ended while it was started');
  return { slot: slot.number, pid, startTicks };
}

/** Whether the process of a record is still the one that was recorded. */
export function isAlive({ pid, startTicks }: ProcessPlace): boolean {
  return startTicksOf(pid) === startTicks;
}

function readStat(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}
