/**
 * The driver of a sandbox, which isolates it: by namespaces, control groups and seccomp of the host's kernel (crun), or
 * by a kernel of its own in user space (gVisor).
 */
export const driverNames = ['crun', 'gvisor'] as const;

/** One of them. */
export type DriverName = (typeof driverNames)[number];
