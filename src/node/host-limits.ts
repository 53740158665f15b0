import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { pidsMax } from './cgroup/cgroup.ts';
import { terminalsMax } from './drivers/crun/config.ts';
import { slotsMax } from './layout.ts';

/** What the host's own programs keep. */
const ofTheHost = { processes: 32_768, terminals: 1024 } as const;
/** The kernel's own limits: PID_MAX_LIMIT (linux/threads.h) and NR_UNIX98_PTY_MAX (linux/tty.h). */
const kernelMax = { pids: 4_194_304, terminals: 1 << 20 } as const;

/** One limit of the kernel's for all of the host: what sandboxes are allowed each must fit into it together. */
type HostLimit = { setting: string; least: number; why: string };

/**
 * Limits that the whole host shares. Processes, terminals and open files of sandboxes are charged to their memory, so
 * that raising these lets no one take more than that.
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

/** Those of the limits that are lower than sandboxes need, with what they are. */
export function lowHostLimits(): (HostLimit & { present: number })[] {
  return hostLimits.flatMap(limit => {
    const path = pathOf(limit);
    const present = existsSync(path) ? Number(readFileSync(path, 'utf8')) : limit.least;
    return present < limit.least ? [{ ...limit, present }] : [];
  });
}

/** Raises what is too low; never lowers anything. Answers what could not be raised. */
export function raiseHostLimits(): (HostLimit & { present: number })[] {
  for (const limit of lowHostLimits()) {
    try {
      writeFileSync(pathOf(limit), String(limit.least));
    } catch {
      // A host within a container may not: the doctor says so.
    }
  }
  return lowHostLimits();
}

function pathOf({ setting }: HostLimit): string {
  return `/proc/sys/${setting}`;
}
