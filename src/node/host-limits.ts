import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { pidsMax } from './cgroup/cgroup.ts';
import { terminalsMax } from './drivers/crun/config.ts';
import { slotsMax } from './layout.ts';

/** What the host's own programs need. */
const ofTheHost = { processes: 32_768, terminals: 1024 } as const;
/** The kernel's own limits: PID_MAX_LIMIT (linux/threads.h) and NR_UNIX98_PTY_MAX (linux/tty.h). */
const kernelMax = { pids: 4_194_304, terminals: 1 << 20 } as const;

/** One limit that the kernel sets for the whole host: what all sandboxes are allowed together must fit into it. */
type HostLimit = { setting: string; least: number; why: string };

/**
 * Limits that the whole host shares. Processes, terminals and open files of sandboxes are charged to their memory, so
 * raising these limits lets nobody take more than that.
 */
const hostLimits: HostLimit[] = [
  {
    setting: 'kernel/pid_max',
    least: Math.min(slotsMax * pidsMax + ofTheHost.processes, kernelMax.pids),
    why: 'process IDs',
  },
  { setting: 'kernel/threads-max', least: slotsMax * pidsMax + ofTheHost.processes, why: 'threads' },
  {
    setting: 'kernel/pty/max',
    least: Math.min(slotsMax * terminalsMax + ofTheHost.terminals, kernelMax.terminals),
    why: 'terminals',
  },
  { setting: 'fs/file-max', least: Number.MAX_SAFE_INTEGER, why: 'open files' },
];

/** The limits that are lower than sandboxes need, with their present values. */
export function lowHostLimits(): (HostLimit & { present: number })[] {
  return hostLimits.flatMap(limit => {
    const path = pathOf(limit);
    const present = existsSync(path) ? Number(readFileSync(path, 'utf8')) : limit.least;
    return present < limit.least ? [{ ...limit, present }] : [];
  });
}

/** Raises limits that are too low; never lowers any. Answers those that could not be raised. */
export function raiseHostLimits(): (HostLimit & { present: number })[] {
  for (const limit of lowHostLimits()) {
    try {
      writeFileSync(pathOf(limit), String(limit.least));
    } catch {
      // A host within a container may not raise it: the doctor reports that.
    }
  }
  return lowHostLimits();
}

function pathOf({ setting }: HostLimit): string {
  return `/proc/sys/${setting}`;
}
