const groupsOfNetwork = 4;

/**
 * What identifies the person behind an address: an IPv4 address, or the /64 of an IPv6 address, since whoever has one
 * address of a /64 has them all. `address` is in the kernel's notation; an IPv4 address may be mapped.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  if (address.includes('.')) return address.slice(address.lastIndexOf(':') + 1);
  const gap = address.indexOf('::');
  const first = (gap < 0 ? address : address.slice(0, gap)).split(':').filter(group => group !== '');
  const last =
    gap < 0
      ? []
      : address
          .slice(gap + 2)
          .split(':')
          .filter(group => group !== '');
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0');
  return `${[...first, ...zeros, ...last].slice(0, groupsOfNetwork).join(':')}::/64`;
}

/**
 * True for the loopback addresses that programs on this machine use. The other loopback addresses belong to relays:
 * traffic from a sandbox to the platform's port arrives from one of the sandbox's own.
 */
export function isLoopback(address: string): boolean {
  return address === '::1' || networkOf(address).startsWith('127.0.0.');
}
