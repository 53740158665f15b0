import { dlopen } from 'bun:ffi';
import { errno, ptr } from './libc.ts';

const calls = dlopen('libc.so.6', {
  llistxattr: { args: ['ptr', 'ptr', 'u64'], returns: 'i64' },
  lgetxattr: { args: ['ptr', 'ptr', 'ptr', 'u64'], returns: 'i64' },
}).symbols;

const ENODATA = 61;
const ENOTSUP = 95;
/** The kernel's own bounds for the list of names and for one value (xattr(7)). */
const bytesMax = 65_536;
const buffer = Buffer.alloc(bytesMax);

/** The extended attributes of a file, links not followed. `path` has one character for each byte. Errors: those of the system calls. */
export function xattrsOf(path: string): Map<string, Uint8Array> {
  const file = Buffer.from(`${path}\0`, 'latin1');
  const xattrs = new Map<string, Uint8Array>();
  const length = Number(calls.llistxattr(ptr(file), ptr(buffer), bytesMax));
  if (length < 0 && errno() !== ENOTSUP) throw new Error(`llistxattr: errno ${errno()}`);
  if (length <= 0) return xattrs;
  for (const name of buffer.toString('latin1', 0, length - 1).split('\0')) {
    const size = Number(calls.lgetxattr(ptr(file), ptr(Buffer.from(`${name}\0`, 'latin1')), ptr(buffer), bytesMax));
    if (size < 0 && errno() !== ENODATA) throw new Error(`lgetxattr: errno ${errno()}`);
    if (size >= 0) xattrs.set(name, Uint8Array.prototype.slice.call(buffer, 0, size));
  }
  return xattrs;
}
