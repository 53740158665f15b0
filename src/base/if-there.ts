import { isGone, systemCodeOf } from './error.ts';

/**
 * Besides a missing file or process: a device that vanishes while it is read (EINVAL: sysfs answers it for an
 * interface's statistics).
 */
const alsoGone = new Set(['ENODEV', 'ENXIO', 'EINVAL']);

/** What `look` answers, or `otherwise` where it looks at something that is not there. Other errors are thrown. */
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
