import { closeSync, constants, fstatSync, type BigIntStats } from 'node:fs';
import { constants as system } from 'node:os';
import { dlopen, read } from 'bun:ffi';
import { AtollError } from '../../base/error.ts';
import type { ByteString } from '../erofs/tree.ts';

/**
 * A stranger's file system. The kernel resolves all paths beneath its root, without links and `..` (openat2(2),
 * RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS): whatever a path was built from, it leads nowhere else. `follow` reads links
 * as a system with this root would.
 */
export type Root = Disposable & {
  /** Undefined if the name does not exist. */
  stat(path: ByteString): BigIntStats | undefined;
  /** Names in a directory, in no order. */
  names(path: ByteString): ByteString[];
  readLink(path: ByteString): ByteString;
  /** A descriptor of a file or directory for reading; FIFOs and devices are never opened. */
  open(path: ByteString): Opened;
  /**
   * The place of a path after following its links, without links, `..` and leading slash; `''` is the root itself.
   * Undefined if it leads nowhere.
   */
  follow(path: ByteString): ByteString | undefined;
};

/** An open file or directory, closed at the end of its block. */
export type Opened = Disposable & { fd: number };

const calls = dlopen('libc.so.6', {
  syscall: { args: ['i64', 'int', 'ptr', 'ptr', 'u64'], returns: 'i64' },
  readlinkat: { args: ['int', 'ptr', 'ptr', 'u64'], returns: 'i64' },
  getdents64: { args: ['int', 'ptr', 'u64'], returns: 'i64' },
  flistxattr: { args: ['int', 'ptr', 'u64'], returns: 'i64' },
  fgetxattr: { args: ['int', 'ptr', 'ptr', 'u64'], returns: 'i64' },
  __errno_location: { args: [], returns: 'ptr' },
}).symbols;

/** The same on all newer architectures of the kernel. */
const openat2 = 437;
const RESOLVE_NO_MAGICLINKS = 2;
const RESOLVE_NO_SYMLINKS = 4;
const RESOLVE_BENEATH = 8;
const O_PATH = 0o10000000;
const O_CLOEXEC = 0o2000000;
const AT_FDCWD = -100;

/** The kernel's limit of a path and of a link's target. */
const pathBytesMax = 4096;
const linksFollowedMax = 40;
const directoryBytesMax = 1 << 16;

/** The kernel's limits of the list of names and of one value (xattr(7)). */
const xattrBytesMax = 65_536;

const { ENOENT, ENOTDIR, ENAMETOOLONG, ENODATA, ENOTSUP } = system.errno;
const nameOf = new Map(Object.entries(system.errno).map(([name, number]) => [number, name]));

/** Opens the directory at `path` as a root. Errors: those of the system calls, by `code`. */
export function openRoot(path: ByteString): Root {
  const top = openFrom(AT_FDCWD, path, constants.O_DIRECTORY | O_PATH, 0);
  const handle = (beneath: ByteString, flags: number) =>
    openFrom(
      top.fd,
      beneath === '' ? '.' : beneath,
      flags,
      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    );

  const stat = (beneath: ByteString): BigIntStats | undefined => {
    try {
      using found = handle(beneath, O_PATH | constants.O_NOFOLLOW);
      return fstatSync(found.fd, { bigint: true });
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  };
  const readLink = (beneath: ByteString): ByteString => {
    using link = handle(beneath, O_PATH | constants.O_NOFOLLOW);
    const target = Buffer.alloc(pathBytesMax);
    const length = Number(calls.readlinkat(link.fd, cBytes(''), target, target.length));
    if (length < 0) throw failure('readlinkat', beneath);
    return target.toString('latin1', 0, length);
  };

  return {
    stat,
    readLink,
    names(beneath) {
      using directory = handle(beneath, constants.O_RDONLY | constants.O_DIRECTORY);
      return namesIn(directory.fd, beneath);
    },
    open: beneath => handle(beneath, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW),
    follow(path) {
      let at: ByteString[] = [];
      const pending = path.split('/').toReversed();
      for (let followed = 0, name; (name = pending.pop()) !== undefined;) {
        if (name === '' || name === '.') continue;
        if (name === '..') {
          at.pop();
          continue;
        }
        const next = [...at, name].join('/');
        const found = stat(next);
        if (!found) return undefined;
        if (!found.isSymbolicLink()) at.push(name);
        else {
          if (++followed > linksFollowedMax) return undefined;
          const target = readLink(next);
          if (target.startsWith('/')) at = [];
          pending.push(...target.split('/').toReversed());
        }
      }
      return at.join('/');
    },
    [Symbol.dispose]: () => top[Symbol.dispose](),
  };
}

/**
 * The extended attributes of an open file or directory: a layer keeps attributes only for these. Errors: those of the
 * system calls.
 */
export function xattrsOf({ fd }: Opened): Map<string, Uint8Array> {
  const xattrs = new Map<string, Uint8Array>();
  const length = Number(calls.flistxattr(fd, xattrBuffer, xattrBytesMax));
  if (length < 0 && errno() !== ENOTSUP) throw failure('flistxattr', '');
  if (length <= 0) return xattrs;
  for (const name of xattrBuffer.toString('latin1', 0, length - 1).split('\0')) {
    const size = Number(calls.fgetxattr(fd, cBytes(name), xattrBuffer, xattrBytesMax));
    if (size < 0 && errno() !== ENODATA) throw failure('fgetxattr', '');
    if (size >= 0) xattrs.set(name, Uint8Array.prototype.slice.call(xattrBuffer, 0, size));
  }
  return xattrs;
}

const xattrBuffer = Buffer.alloc(xattrBytesMax);

function openFrom(at: number, path: ByteString, flags: number, resolve: number): Opened {
  const how = new BigUint64Array([BigInt(flags | O_CLOEXEC), 0n, BigInt(resolve)]);
  const fd = Number(calls.syscall(openat2, at, cBytes(path), how, how.byteLength));
  if (fd < 0) throw failure('openat2', path);
  return { fd, [Symbol.dispose]: () => closeSync(fd) };
}

// struct linux_dirent64 (getdents64(2)): inode, offset, u16 length of the record, u8 type, name with a NUL.
function namesIn(fd: number, path: ByteString): ByteString[] {
  const names: ByteString[] = [];
  const buffer = Buffer.alloc(directoryBytesMax);
  for (let count; (count = Number(calls.getdents64(fd, buffer, buffer.length))) !== 0;) {
    if (count < 0) throw failure('getdents64', path);
    for (let at = 0; at < count; at += buffer.readUInt16LE(at + 16)) {
      const name = buffer.toString('latin1', at + 19, buffer.indexOf(0, at + 19));
      if (name !== '.' && name !== '..') names.push(name);
    }
  }
  return names;
}

/** The error of the preceding call. */
function errno(): number {
  const location = calls.__errno_location();
  return location === null ? 0 : read.i32(location, 0);
}

function cBytes(path: ByteString): Buffer {
  return Buffer.from(`${path}\0`, 'latin1');
}

function isMissing(error: unknown): boolean {
  const { errno: number } = error as { errno?: number };
  return number === ENOENT || number === ENOTDIR;
}

function failure(call: string, path: ByteString): Error {
  const number = errno();
  if (number === ENAMETOOLONG)
    return new AtollError('invalid', 'there are directories nested so deep that their path is too long');
  const code = nameOf.get(number) ?? 'EIO';
  return Object.assign(new Error(`${code}: ${call} '${Buffer.from(path, 'latin1').toString().slice(0, 200)}'`), {
    code,
    errno: number,
  });
}
