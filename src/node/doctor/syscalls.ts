import { CString, dlopen, ptr, read } from 'bun:ffi';
import { AtollError } from '../../base/error.ts';

const libc = dlopen('libc.so.6', {
  // Variadic in C; integers and pointers travel the same way on x86-64 and arm64 Linux.
  syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64' },
  close: { args: ['int'], returns: 'int' },
  strerror: { args: ['int'], returns: 'ptr' },
  __errno_location: { args: [], returns: 'ptr' },
}).symbols;

/** Numbers of the mount calls; since Linux 5.2 they are the same on every machine type. */
const number = { open_tree: 428, fsopen: 430, fsconfig: 431, fsmount: 432, mount_setattr: 442 } as const;

const AT_FDCWD = -100;
const AT_EMPTY_PATH = 0x1000;
const OPEN_TREE_CLONE_CLOEXEC = 1 | 0o2000000;
const MOUNT_ATTR_IDMAP = 0x00100000;
const FSOPEN_CLOEXEC = 1;
const FSCONFIG_SET_STRING = 1;
const FSCONFIG_SET_FD = 5;
const FSCONFIG_CMD_CREATE = 6;

/**
 * Descriptors of one probe, closed together at its end. No mount here is ever attached, so closing is all the
 * cleaning.
 */
export class Descriptors implements Disposable {
  readonly #open: number[] = [];

  add(fd: number): number {
    this.#open.push(fd);
    return fd;
  }

  [Symbol.dispose](): void {
    for (const fd of this.#open.reverse()) libc.close(fd);
  }
}

/** A detached copy of the mount at `path`, its owners shifted into the user namespace `userns`. mount_setattr(2). */
export function openIdmapped(open: Descriptors, path: string, userns: number): number {
  const tree = open.add(call('open_tree', AT_FDCWD, path, OPEN_TREE_CLONE_CLOEXEC));
  // struct mount_attr { attr_set, attr_clr, propagation, userns_fd }
  const attributes = new BigUint64Array([BigInt(MOUNT_ATTR_IDMAP), 0n, 0n, BigInt(userns)]);
  call('mount_setattr', tree, '', AT_EMPTY_PATH, attributes, attributes.byteLength);
  return tree;
}

/** What a file system is made of: text options, and directories given as descriptors. */
type FilesystemOptions = { strings?: Record<string, string>; descriptors?: [string, number][] };

/** Makes a detached mount of a file system. fsopen(2), fsconfig(2), fsmount(2). */
export function makeFilesystem(open: Descriptors, type: string, options: FilesystemOptions, readOnly = false): number {
  const context = open.add(call('fsopen', type, FSOPEN_CLOEXEC));
  for (const [key, value] of Object.entries(options.strings ?? {})) {
    call('fsconfig', context, FSCONFIG_SET_STRING, key, value, 0);
  }
  if (readOnly) call('fsconfig', context, 0, 'ro', 0, 0);
  for (const [key, fd] of options.descriptors ?? []) call('fsconfig', context, FSCONFIG_SET_FD, key, 0, fd);
  call('fsconfig', context, FSCONFIG_CMD_CREATE, 0, 0, 0);
  return open.add(call('fsmount', context, 1, 0));
}

function call(name: keyof typeof number, ...args: (number | string | BigUint64Array)[]): number {
  // Kept until the call is over: the kernel reads the memory that the numbers point to.
  const held = args.map(arg => (typeof arg === 'string' ? Buffer.from(`${arg}\0`) : arg));
  const [a = 0, b = 0, c = 0, d = 0, e = 0] = held.map(arg => (typeof arg === 'number' ? arg : Number(ptr(arg))));
  const result = Number(libc.syscall(number[name], a, b, c, d, e, 0));
  if (result < 0 || held.length !== args.length) throw new AtollError('internal', `${name}: ${errorText()}`);
  return result;
}

function errorText(): string {
  const location = libc.__errno_location();
  const text = location === null ? null : libc.strerror(read.i32(location, 0));
  return text === null ? 'unknown error' : new CString(text).toString();
}
