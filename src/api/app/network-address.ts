import { isIPv4, isIPv6 } from 'node:net';

/** Reads `1.2.3.4`, `10.0.0.0/8`, `2001:db8::1` or `2001:db8::/32`; null when the text is neither. */
export function parseBlock(text: string): { address: string; bits: number; version: 4 | 6 } | null {
  const slash = text.indexOf('/');
  const address = slash < 0 ? text : text.slice(0, slash);
  // A zone (fe80::1%eth0) names an interface of one machine and means nothing to a rule.
  if (address.includes('%')) return null;
  const version = isIPv4(address) ? 4 : isIPv6(address) ? 6 : null;
  if (version === null) return null;
  const bitsMax = version === 4 ? 32 : 128;
  if (slash < 0) return { address, bits: bitsMax, version };
  const bitsText = text.slice(slash + 1);
  const bits = Number(bitsText);
  return /^\d{1,3}$/.test(bitsText) && bits <= bitsMax ? { address, bits, version } : null;
}

const label = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;
const nameCharactersMax = 253;

/** Whether a text is a DNS host name in ASCII with a last label that no address ends with. */
export function isHostName(text: string): boolean {
  const name = text.toLowerCase();
  const labels = name.split('.');
  return name.length <= nameCharactersMax && labels.every(part => label.test(part)) && !/^\d+$/.test(labels.at(-1) ?? '');
}

/** `example.com`, `*.example.com` (any depth, not `example.com` itself), or `*`. */
export function isDomainPattern(text: string): boolean {
  return text === '*' || isHostName(text.startsWith('*.') ? text.slice(2) : text);
}
