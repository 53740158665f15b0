import { isGone, systemCodeOf } from './error.ts';

/**
 * Beside no such file and no such process: a device that is gone while it is looked at (EINVAL: sysfs says so of an
 * interface's statistics).
 */
const alsoGone = new Set(['ENODEV', 'ENXIO', 'EINVAL']);

/** What `look` answers, or `otherwise` where it looks at something that is not there. Throws what else it throws. */
export function ifThere<T, Absent>(look: () => T, otherwise: Absent): T | Absent {
  try {
    return look();
  } catch (error) {
    if (isGone(error) || alsoGone.has(systemCodeOf(error))) return otherwise;
    throw error;
  }
}

/** Ends a process at once, unless it has ended. Throws where it may not. */
export function killIfThere(pid: number): void {
  ifThere(() => process.kill(pid, 'SIGKILL'), undefined);
}
