const groupsOfNetwork = 4;

/**
 * What stands for the person behind an address: an IPv4 address, or the /64 of an IPv6 one, since whoever has one
 * address of it has them all. `address` as the kernel writes it; an IPv4 one may be mapped.
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
 * True for the addresses that programs of this machine have on the loopback. Its others are for relays: what comes from
 * a sandbox to the platform's port comes from one of the sandbox's own.
 */
export function isLoopback(address: string): boolean {
  return address === '::1' || networkOf(address).startsWith('127.0.0.');
}
