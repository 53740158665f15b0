/** What a process has used so far: processor time in ticks of the kernel's, memory that it has now, and whose it is. */
export type Taken = { ticks: number; memoryBytes: number; userId: number };

/** Ticks a second, as programs are told them on every architecture: proc_pid_stat(5). */
const ticksPerSecond = 100;

/** What `/proc/PID/stat` and `/proc/PID/status` say; null where they are of no process any more. */
export function takenOf(stat: string, status: string): Taken | null {
  // The name of the program may hold spaces and parentheses: fields are counted behind its end.
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

/** Share of one processor that a process took between two looks `ms` apart, percent. */
export const cpuPercent = (before: Taken, now: Taken, ms: number): number =>
  Math.max(0, ((now.ticks - before.ticks) / ticksPerSecond / (ms / 1000)) * 100);

/** The name that `/etc/passwd` gives a user; the number where it has none. */
export function userName(passwd: string, userId: number): string {
  const line = passwd.split('\n').find(each => each.split(':', 3)[2] === String(userId));
  return line?.split(':', 1)[0] || String(userId);
}
