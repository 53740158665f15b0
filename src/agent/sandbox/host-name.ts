import { readSmallFile, writeSmallFile } from './small-file.ts';

/**
 * Writes down the sandbox's host name (the platform sets the kernel's own) and makes it resolvable: sudo complains
 * about a host whose name it can't look up.
 */
export function nameHost(hostname: string): void {
  const before = readSmallFile('/etc/hostname')?.trim();
  if (before !== hostname) writeSmallFile('/etc/hostname', `${hostname}\n`);
  const present = readSmallFile('/etc/hosts');
  // The sandbox that this one was made from had a line of its own.
  const lines = (present ?? '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n')
    .split('\n')
    .filter(line => line === own(hostname) || line !== own(before ?? ''));
  const isNamed = lines.some(line => line.replace(/#.*/, '').split(/\s+/).slice(1).includes(hostname));
  const hosts = lines.join('\n');
  const wanted = isNamed ? hosts : `${hosts.replace(/\n?$/, '\n')}${own(hostname)}\n`;
  if (wanted !== present) writeSmallFile('/etc/hosts', wanted);
}

const own = (hostname: string) => `127.0.1.1 ${hostname}`;
