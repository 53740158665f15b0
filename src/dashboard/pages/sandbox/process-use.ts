/** A process's use so far: processor time in kernel ticks, its current memory, and its user. */
export type Taken = { ticks: number; memoryBytes: number; userId: number };

/** Ticks a second, as reported to programs on every architecture: proc_pid_stat(5). */
const ticksPerSecond = 100;

/** The facts in `/proc/PID/stat` and `/proc/PID/status`; null if they no longer belong to a process. */
export function takenOf(stat: string, status: string): Taken | null {
  // The program's name may contain spaces and parentheses: fields are counted from its end.
  const [utime, stime] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  const [userId, kibibytes] = [/^Uid:\s+(\d+)/m, /^VmRSS:\s+(\d+)/m].map(each => Number(each.exec(status)?.[1]));
  if (utime === undefined || stime === undefined || userId === undefined || Number.isNaN(userId)) return null;
  // A process that has ended and waits for its parent has no memory.
  return { ticks: utime + stime, memoryBytes: (kibibytes || 0) * 1024, userId };
}

/** Share of one processor that a process used between two looks `ms` apart, percent. */
export const cpuPercent = (before: Taken, now: Taken, ms: number): number =>
  Math.max(0, ((now.ticks - before.ticks) / ticksPerSecond / (ms / 1000)) * 100);

/** The name that `/etc/passwd` gives a user; the number if it gives none. */
export function userName(passwd: string, userId: number): string {
  const line = passwd.split('\n').find(each => each.split(':', 3)[2] === String(userId));
  return line?.split(':', 1)[0] || String(userId);
}
