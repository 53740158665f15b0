import { readSmallFile, writeSmallFile } from './small-file.ts';

/**
 * Writes down the sandbox's host name (the kernel's own is the platform's to set) and lets it be resolved:
 * sudo complains about a host whose name it can't look up.
 */
export function nameHost(hostname: string): void {
  writeSmallFile('/etc/hostname', `${hostname}\n`);
  const hosts = readSmallFile('/etc/hosts') ?? '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n';
  const isNamed = hosts.split('\n').some(line => line.replace(/#.*/, '').split(/\s+/).slice(1).includes(hostname));
  if (!isNamed) writeSmallFile('/etc/hosts', `${hosts.replace(/\n?$/, '\n')}127.0.1.1 ${hostname}\n`);
}
