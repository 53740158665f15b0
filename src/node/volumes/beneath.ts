import { constants as system } from 'node:os';
import { closeSync, constants } from 'node:fs';
import { cString, errno, libc } from '../native/libc.ts';

/** The same number on all of the kernel's newer architectures (openat2(2)). */
const openat2 = 437;
const RESOLVE_NO_MAGICLINKS = 2;
const RESOLVE_NO_SYMLINKS = 4;
const RESOLVE_BENEATH = 8;
const beneath = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
const O_PATH = 0o10000000;
const O_CLOEXEC = 0o2000000;
const AT_FDCWD = -100;
const AT_EMPTY_PATH = 0x1000;

const { ELOOP, EINVAL, EXDEV } = system.errno;
const nameOf = new Map(Object.entries(system.errno).map(([name, number]) => [number, name]));

/** How many links are followed on one path: the kernel's own bound. */
const linksMax = 40;
/**
 * Parts of a path with links, including those of their targets: the kernel would follow 40 targets of 4,095 bytes
 * each, which takes it tens of milliseconds, and this process does nothing else meanwhile.
 */
const partsMax = 256;
/** The kernel's own bound of a link's target. */
const targetBytesMax = 4_096;

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
 * neither a FIFO nor a device is touched. Links on the way are followed, but one that leads out fails with `EXDEV`. A
 * link at the end is followed unless `flags` contains `O_NOFOLLOW`. Errors: those of the system call, with its `code`;
 * `ELOOP` also for a path that has too many parts with its links.
 */
export function openBeneath(top: Opened, path: string, flags = 0): Opened {
  const found = tryOpen(top.fd, path === '' ? '.' : path, flags, beneath);
  if (typeof found === 'object') return found;
  if (found !== ELOOP) throw systemError('openat2', path, found);
  return followBeneath(top, path, flags);
}

/** The same part by part: the kernel gets only names, and no `..`, so that nothing can be moved away meanwhile. */
function followBeneath(top: Opened, path: string, flags: number): Opened {
  const fail = (number: number): never => {
    throw systemError('openat2', path, number);
  };
  const pending = path.split('/').toReversed();
  const above: Opened[] = [];
  let links = 0;
  try {
    for (let parts = 0, name; (name = pending.pop()) !== undefined; parts++) {
      if (parts === partsMax) fail(ELOOP);
      if (name === '' || name === '.') continue;
      if (name === '..') {
        (above.pop() ?? fail(EXDEV))[Symbol.dispose]();
        continue;
      }
      const isLast = pending.length === 0;
      const at = above.at(-1)?.fd ?? top.fd;
      const found = tryOpen(at, name, isLast ? flags : constants.O_DIRECTORY, beneath);
      if (typeof found === 'object') above.push(found);
      else if (found !== ELOOP || (isLast && (flags & constants.O_NOFOLLOW) !== 0)) fail(found);
      else {
        const target = links++ < linksMax ? targetIn(at, name) : fail(ELOOP);
        if (target.startsWith('/')) fail(EXDEV);
        pending.push(...target.split('/').toReversed());
      }
    }
    return above.pop() ?? open(top.fd, '.', flags, beneath);
  } finally {
    for (const directory of above) directory[Symbol.dispose]();
  }
}

/** The target of a link; if it is no longer a link, the name itself, which counts as one more link. */
function targetIn(directory: number, name: string): string {
  const target = Buffer.alloc(targetBytesMax);
  const length = Number(libc.readlinkat(directory, cString(name), target, target.length));
  if (length >= 0) return target.toString('utf8', 0, length);
  const number = errno();
  if (number === EINVAL) return name;
  throw systemError('readlinkat', name, number);
}

/** Gives a name in a directory to an open file that has none yet. Errors: those of the system call. */
export function nameFile(fd: number, directory: Opened, name: string): void {
  if (libc.linkat(fd, cString(''), directory.fd, cString(name), AT_EMPTY_PATH) < 0)
    throw systemError('linkat', name, errno());
}

function open(at: number, path: string, flags: number, resolve: number): Opened {
  const found = tryOpen(at, path, flags, resolve);
  if (typeof found === 'object') return found;
  throw systemError('openat2', path, found);
}

/** Opens it, or answers the number of the error. */
function tryOpen(at: number, path: string, flags: number, resolve: number): Opened | number {
  const how = new BigUint64Array([BigInt(flags | O_PATH | O_CLOEXEC), 0n, BigInt(resolve)]);
  const fd = Number(libc.syscall(openat2, at, cString(path), how, how.byteLength));
  if (fd < 0) return errno();
  return { fd, path: `/proc/self/fd/${fd}`, [Symbol.dispose]: () => closeSync(fd) };
}

function systemError(call: string, path: string, number: number): Error {
  const code = nameOf.get(number) ?? 'EIO';
  return Object.assign(new Error(`${code}: ${call} '${path}'`), { code });
}
