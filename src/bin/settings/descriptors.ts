import { dlopen, FFIType } from 'bun:ffi';
import { readFileSync } from 'node:fs';

/** `RLIMIT_NOFILE` (getrlimit(2)). */
const openFilesResource = 7;
/**
 * Open files that the platform asks for if the system gives fewer; with this many, no limit of the edge has to shrink.
 * A connection into a sandbox that another machine carries takes two.
 */
export const openFilesWanted = { direct: 65_536, carried: 131_072 } as const;

/**
 * How many files this process may hold open, after raising the limit as far as the system allows: the runtime raises
 * the soft limit at its start, and root with CAP_SYS_RESOURCE may raise the hard one.
 */
export function openFilesMax(wanted: number): number {
  const before = limitNow();
  if (before >= wanted) return before;
  const libc = dlopen('libc.so.6', { setrlimit: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 } });
  try {
    libc.symbols.setrlimit(openFilesResource, BigUint64Array.of(BigInt(wanted), BigInt(wanted)));
  } finally {
    libc.close();
  }
  return limitNow();
}

function limitNow(): number {
  const soft = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
}
