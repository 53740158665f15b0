/** The end of a program by the kernel. `signal` is a number. */
export type Ending = { exitCode: number } | { signal: number };

/** The wire's `EndEvent`; members at their default value are absent, as protobuf's JSON has it. */
export type EndEvent = { exitCode?: number; exited?: true; status: string; error?: string };

/** The wait status of Linux: the exit code in the second byte, else the signal in the lower seven bits. */
export function endingOfWaitStatus(status: number): Ending {
  return (status & 0x7f) === 0 ? { exitCode: (status >> 8) & 0xff } : { signal: status & 0x7f };
}

/**
 * The end as clients see it. `outOfMemory`: the kernel ended something in the sandbox because its memory was used up.
 * `status` stays the plain text even then, as clients compare it; `error` says why. Terminals are told no
 * reason: the command line compares their `error` too.
 */
export function endEventOf(ending: Ending, outOfMemory: boolean): EndEvent {
  const reason = outOfMemory ? ' (out of memory: the memory limit of the sandbox was reached)' : '';
  if ('signal' in ending) {
    const status = `signal: ${signalText(ending.signal)}`;
    return { exitCode: -1, status, error: status + reason };
  }
  const status = `exit status ${ending.exitCode}`;
  if (ending.exitCode === 0) return { exited: true, status };
  return { exitCode: ending.exitCode, exited: true, status, error: status + reason };
}

function signalText(number: number): string {
  return signalTexts[number - 1] ?? `signal ${number}`;
}

// The descriptions that POSIX systems print, in lower case; index 0 is signal 1 of Linux (signal(7)).
const signalTexts = [
  'hangup',
  'interrupt',
  'quit',
  'illegal instruction',
  'trace/breakpoint trap',
  'aborted',
  'bus error',
  'floating point exception',
  'killed',
  'user defined signal 1',
  'segmentation fault',
  'user defined signal 2',
  'broken pipe',
  'alarm clock',
  'terminated',
  'stack fault',
  'child exited',
  'continued',
  'stopped (signal)',
  'stopped',
  'stopped (tty input)',
  'stopped (tty output)',
  'urgent I/O condition',
  'CPU time limit exceeded',
  'file size limit exceeded',
  'virtual timer expired',
  'profiling timer expired',
  'window changed',
  'I/O possible',
  'power failure',
  'bad system call',
];
