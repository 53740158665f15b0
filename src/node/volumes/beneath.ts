import { constants as system } from 'node:os';
import { closeSync, constants } from 'node:fs';
import { cString, errno, libc } from '../native/libc.ts';

/** The same on all of the kernel's newer architectures (openat2(2)). */
const openat2 = 437;
const RESOLVE_NO_MAGICLINKS = 2;
const RESOLVE_BENEATH = 8;
const O_PATH = 0o10000000;
const O_CLOEXEC = 0o2000000;
const AT_FDCWD = -100;
const AT_EMPTY_PATH = 0x1000;

const nameOf = new Map(Object.entries(system.errno).map(([name, number]) => [number, name]));

/** A descriptor that is closed with its block. */
export type Opened = Disposable & {
  fd: number;
  /** Names the opened file itself, wherever its path leads by now. */
  path: string;
};

/** Opens a directory by its path on this host, as the top for `openBeneath`. Errors: those of the system call. */
export function openTop(path: string): Opened {
  return open(AT_FDCWD, path, constants.O_DIRECTORY, 0);
}

/**
 * A handle (`O_PATH`) on what is at a clean, relative path below `top`; nothing is opened for reading or writing, so
 * that neither a FIFO nor a device is touched. Links on the way are followed, and none leads out: that fails with
 * `EXDEV`. A link at the end is followed unless `flags` holds `O_NOFOLLOW`. Errors: those of the system call, with its
 * `code`.
 */
export function openBeneath(top: Opened, path: string, flags = 0): Opened {
  return open(top.fd, path === '' ? '.' : path, flags, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

/** Gives an open file that has no name yet one in a directory. Errors: those of the system call. */
export function nameFile(fd: number, directory: Opened, name: string): void {
  if (libc.linkat(fd, cString(''), directory.fd, cString(name), AT_EMPTY_PATH) < 0) throw systemError('linkat', name);
}

function open(at: number, path: string, flags: number, resolve: number): Opened {
  const how = new BigUint64Array([BigInt(flags | O_PATH | O_CLOEXEC), 0n, BigInt(resolve)]);
  const fd = Number(libc.syscall(openat2, at, cString(path), how, how.byteLength));
  if (fd < 0) throw systemError('openat2', path);
  return { fd, path: `/proc/self/fd/${fd}`, [Symbol.dispose]: () => closeSync(fd) };
}

function systemError(call: string, path: string): Error {
  const code = nameOf.get(errno()) ?? 'EIO';
  return Object.assign(new Error(`${code}: ${call} '${path}'`), { code });
}
