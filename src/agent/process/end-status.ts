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
 * `status` stays the plain text even then, as clients compare it; `error` says why.
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

/** The number of a signal that Bun names, e.g. `SIGKILL` → 9. Signals without a name come as numbers. */
export function signalNumber(signal: string | number): number {
  return typeof signal === 'number' ? signal : signalNames.indexOf(signal) + 1;
}

function signalText(number: number): string {
  return signalTexts[number - 1] ?? `signal ${number}`;
}

// The descriptions that POSIX systems print, in lower case; index 0 is signal 1 of Linux.
const signals: [name: string, text: string][] = [
  ['SIGHUP', 'hangup'],
  ['SIGINT', 'interrupt'],
  ['SIGQUIT', 'quit'],
  ['SIGILL', 'illegal instruction'],
  ['SIGTRAP', 'trace/breakpoint trap'],
  ['SIGABRT', 'aborted'],
  ['SIGBUS', 'bus error'],
  ['SIGFPE', 'floating point exception'],
  ['SIGKILL', 'killed'],
  ['SIGUSR1', 'user defined signal 1'],
  ['SIGSEGV', 'segmentation fault'],
  ['SIGUSR2', 'user defined signal 2'],
  ['SIGPIPE', 'broken pipe'],
  ['SIGALRM', 'alarm clock'],
  ['SIGTERM', 'terminated'],
  ['SIGSTKFLT', 'stack fault'],
  ['SIGCHLD', 'child exited'],
  ['SIGCONT', 'continued'],
  ['SIGSTOP', 'stopped (signal)'],
  ['SIGTSTP', 'stopped'],
  ['SIGTTIN', 'stopped (tty input)'],
  ['SIGTTOU', 'stopped (tty output)'],
  ['SIGURG', 'urgent I/O condition'],
  ['SIGXCPU', 'CPU time limit exceeded'],
  ['SIGXFSZ', 'file size limit exceeded'],
  ['SIGVTALRM', 'virtual timer expired'],
  ['SIGPROF', 'profiling timer expired'],
  ['SIGWINCH', 'window changed'],
  ['SIGIO', 'I/O possible'],
  ['SIGPWR', 'power failure'],
  ['SIGSYS', 'bad system call'],
];
const signalNames = signals.map(([name]) => name);
const signalTexts = signals.map(([, text]) => text);
