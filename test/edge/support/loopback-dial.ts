import { dlopen, FFIType, ptr } from 'bun:ffi';
import { AtollError } from '../../../src/base/error.ts';

const sockStreamCloexec = 1 | 0o2000000;
const afInet = 2;
const setFlags = 4;
const nonBlocking = 0o4000;
const addressBytes = 16;

const libc = dlopen('libc.so.6', {
  socket: { args: [FFIType.i32, FFIType.i32, FFIType.i32], returns: FFIType.i32 },
  connect: { args: [FFIType.i32, FFIType.ptr, FFIType.u32], returns: FFIType.i32 },
  close: { args: [FFIType.i32], returns: FFIType.i32 },
  fcntl: { args: [FFIType.i32, FFIType.i32, FFIType.i32], returns: FFIType.i32 },
}).symbols;

/** Does what a node's `dial` does, for a port of this host's loopback: answers a connected, non-blocking descriptor. */
export function dialLoopback(port: number): number {
  const fd = libc.socket(afInet, sockStreamCloexec, 0);
  const address = new Uint8Array(addressBytes);
  const view = new DataView(address.buffer);
  view.setUint16(0, afInet, true);
  view.setUint16(2, port);
  address.set([127, 0, 0, 1], 4);
  if (libc.connect(fd, ptr(address), addressBytes) !== 0) {
    libc.close(fd);
    throw new AtollError('unavailable', `nothing listens on port ${port}`);
  }
  libc.fcntl(fd, setFlags, nonBlocking);
  return fd;
}
