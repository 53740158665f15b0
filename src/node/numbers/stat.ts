/** Ticks of a second in what the kernel reports to programs: USER_HZ, the same on every machine (time(7)). */
const ticksPerSecond = 100;
/** The number of ticks in 600 years has this many digits. */
const digitsMax = 12;

/** Seconds of processor time since a sandbox began, all its processors together. */
export type ProcessorTimes = { userSeconds: number; systemSeconds: number; idleSeconds: number };

/**
 * /proc/stat (proc_stat(5)) of a sandbox with `count` processors that share its work evenly: which of the host's
 * processors did the work is no property of the sandbox. Its length depends only on the count: blanks follow the last
 * line.
 */
export function stat(times: ProcessorTimes, options: { count: number; bootSeconds: number; tasks: number }): string {
  const { count, bootSeconds, tasks } = options;
  const share = (part: number) => {
    const ticks = (seconds: number) => Math.max(Math.floor((seconds * ticksPerSecond) / part), 0);
    return `${ticks(times.userSeconds)} 0 ${ticks(times.systemSeconds)} ${ticks(times.idleSeconds)} 0 0 0 0 0 0`;
  };
  const each = share(count);
  const text = [
    `cpu  ${share(1)}`,
    ...Array.from({ length: count }, (_, index) => `cpu${index} ${each}`),
    'intr 0',
    'ctxt 0',
    `btime ${bootSeconds}`,
    `processes ${tasks}`,
    'procs_running 1',
    'procs_blocked 0',
  ].join('\n');
  const lineMax = 'cpu0000 '.length + ' 0 0 0 0 0 0 0'.length + 3 * (digitsMax + 1);
  return `${text.padEnd((count + 1) * lineMax + 6 * (digitsMax + 'procs_running '.length))}\n`;
}
