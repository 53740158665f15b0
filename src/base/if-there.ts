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

/** Ends a process at once, and answers whether it was still there. Throws where it may not be ended. */
export function killIfThere(pid: number): boolean {
  return ifThere(() => process.kill(pid, 'SIGKILL'), false);
}
