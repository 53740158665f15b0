/** The words for a process that a signal has ended; `number` is the signal's. */
export function signalText(number: number): string {
  return `${prefix}${texts[number - 1] ?? `signal ${number}`}`;
}

/** The signal that such a text names; undefined for any other text. */
export function signalOf(text: string): number | undefined {
  if (!text.startsWith(prefix)) return undefined;
  const name = text.slice(prefix.length).split(' (out of memory')[0] ?? '';
  const number = texts.indexOf(name) + 1 || Number(/^signal (\d+)$/.exec(name)?.[1]);
  return number > 0 ? number : undefined;
}

const prefix = 'signal: ';

// The descriptions that POSIX systems print, in lower case; index 0 is signal 1 of Linux (signal(7)).
const texts = [
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
