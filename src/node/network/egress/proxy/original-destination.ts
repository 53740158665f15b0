import { dlopen } from 'bun:ffi';
import type { Destination } from './serve.ts';

const SOL_IP = 0;
const SO_ORIGINAL_DST = 80;
const addressBytes = 16;

const { getsockopt } = dlopen('libc.so.6', {
  getsockopt: { args: ['int', 'int', 'int', 'ptr', 'ptr'], returns: 'int' },
}).symbols;

/** Where the client of an accepted socket wanted to connect before the packet rules redirected it. */
export function originalDestination(fd: number): Destination | undefined {
  const address = Buffer.alloc(addressBytes);
  if (getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, address, Buffer.of(addressBytes, 0, 0, 0)) < 0) return undefined;
  const octets = Uint8Array.from(address.subarray(4, 8));
  return { address: octets.join('.'), octets, port: address.readUInt16BE(2) };
}
