import { signalText } from '../../base/process/signal-text.ts';

/** A program's end as the kernel reports it. `signal` is a number. */
export type Ending = { exitCode: number } | { signal: number };

/** The wire's `EndEvent`; members with their default value are absent, as in protobuf's JSON. */
export type EndEvent = { exitCode?: number; exited?: true; status: string; error?: string };

/** The wait status of Linux: the exit code in the second byte, otherwise the signal in the lower seven bits. */
export function endingOfWaitStatus(status: number): Ending {
  return (status & 0x7f) === 0 ? { exitCode: (status >> 8) & 0xff } : { signal: status & 0x7f };
}

/**
 * The end as clients see it. `outOfMemory`: the kernel killed something in the sandbox because its memory was used up.
 * `status` stays the plain text even then, because clients compare it; `error` says why. Terminals get no reason: the
 * command line compares their `error` too.
 */
export function endEventOf(ending: Ending, outOfMemory: boolean): EndEvent {
  const reason = outOfMemory ? ' (out of memory: the memory limit of the sandbox was reached)' : '';
  if ('signal' in ending) {
    const status = signalText(ending.signal);
    return { exitCode: -1, status, error: status + reason };
  }
  const status = `exit status ${ending.exitCode}`;
  if (ending.exitCode === 0) return { exited: true, status };
  return { exitCode: ending.exitCode, exited: true, status, error: status + reason };
}
