import { readFileSync } from 'node:fs';
import { ifThere } from '../../base/if-there.ts';

/**
 * When a process's machine booted, by the clock of its time namespace (time_namespaces(7)): seconds since 1970. Both
 * texts are as the host reads them, /proc/stat and the process's `timens_offsets`.
 */
export function bootSeconds(pid: number): number {
  const offsets = ifThere(() => readFileSync(`/proc/${pid}/timens_offsets`, 'latin1'), '');
  return bootSecondsOf(readFileSync('/proc/stat', 'latin1'), offsets);
}

/** The same from the texts. No offsets: the kernel has no time namespaces, and everybody has the host's clock. */
export function bootSecondsOf(stat: string, offsets: string): number {
  const host = Number(/^btime (\d+)$/m.exec(stat)?.[1] ?? 0);
  return host - Number(/^boottime\s+(-?\d+)/m.exec(offsets)?.[1] ?? 0);
}
