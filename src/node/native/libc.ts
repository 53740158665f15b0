import { dlopen, read } from 'bun:ffi';

/**
 * The few C library calls that the runtime does not offer. All are non-blocking or take microseconds. Arrays are
 * passed as such and not by address: an address alone does not keep their memory from being freed before the call.
 */
export const libc = dlopen('libc.so.6', {
  setns: { args: ['int', 'int'], returns: 'int' },
  socket: { args: ['int', 'int', 'int'], returns: 'int' },
  connect: { args: ['int', 'ptr', 'u32'], returns: 'int' },
  poll: { args: ['ptr', 'u64', 'int'], returns: 'int' },
  close: { args: ['int'], returns: 'int' },
  bind: { args: ['int', 'ptr', 'u32'], returns: 'int' },
  send: { args: ['int', 'ptr', 'u64', 'int'], returns: 'i64' },
  recv: { args: ['int', 'ptr', 'u64', 'int'], returns: 'i64' },
  setsockopt: { args: ['int', 'int', 'int', 'ptr', 'u32'], returns: 'int' },
  getsockopt: { args: ['int', 'int', 'int', 'ptr', 'ptr'], returns: 'int' },
  syscall: { args: ['i64', 'int', 'ptr', 'ptr', 'u64'], returns: 'i64' },
  readlinkat: { args: ['int', 'ptr', 'ptr', 'u64'], returns: 'i64' },
  linkat: { args: ['int', 'ptr', 'int', 'ptr', 'int'], returns: 'int' },
  mount: { args: ['ptr', 'ptr', 'ptr', 'u64', 'ptr'], returns: 'int' },
  umount2: { args: ['ptr', 'int'], returns: 'int' },
  fallocate: { args: ['int', 'int', 'i64', 'i64'], returns: 'int' },
  flock: { args: ['int', 'int'], returns: 'int' },
  lseek: { args: ['int', 'i64', 'int'], returns: 'i64' },
  __errno_location: { args: [], returns: 'ptr' },
}).symbols;

/** Error numbers that the code tells apart (errno(3)). */
export const errnoOf = { EINPROGRESS: 115, ECONNREFUSED: 111 } as const;

/** The error of the libc call made just before. */
export function errno(): number {
  const location = libc.__errno_location();
  return location === null ? 0 : read.i32(location, 0);
}

/** A text with its final NUL. */
export function cString(text: string): Buffer {
  return Buffer.from(`${text}\0`);
}
