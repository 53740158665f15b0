import { isIPv4, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';

/** A proxy that all outgoing connections of a sandbox go through. */
export type EgressProxy = {
  /** `host:port`, an IPv6 address in brackets, of a SOCKS5 server (RFC 1928). */
  address: string;
  username?: string;
  password?: string;
};

/**
 * Policy for what leaves a sandbox. An explicit allow beats an explicit deny, and a deny beats the default, which is to
 * allow. Protected ranges (the host, its neighbours, other sandboxes) are always denied.
 */
export type EgressPolicy = {
  /** False: as if `denyOut` held everything. */
  internetAccess: boolean;
  /** Addresses, CIDR blocks, and domains: `example.com`, `*.example.com` (any depth, not the apex), `*`. */
  allowOut?: string[];
  /** Addresses and CIDR blocks. */
  denyOut?: string[];
  egressProxy?: EgressProxy;
  /** By domain (exact or `*.suffix`, in lower case): headers to set on requests to it. Grants no access. */
  headerRules?: Record<string, Record<string, string>>;
};

/** A range of addresses that shares its first `bits` bits. */
export type Block = {
  text: string;
  version: 4 | 6;
  /** 4 or 16 octets. */
  octets: Uint8Array;
  bits: number;
};

/** In `denyOut`, stands for all traffic of both families. */
export const allTraffic = '0.0.0.0/0';

/** Azure's machines find facts about themselves here, keys included, although it looks like a public address. */
const azureService = '168.63.129.16/32';

/**
 * Destinations that no sandbox reaches, whatever its own rules say: the host's neighbours, link-local services such as
 * cloud metadata, multicast, and the addresses that stand for sandboxes.
 */
export const protectedNetworks = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/3',
  azureService,
];

/** Every IPv6 address outside of this block is protected: loopback, private, link-local, multicast, mapped IPv4. */
export const globalUnicast = '2000::/3';
/** Blocks within it that carry an IPv4 address of the sandbox's choice: Teredo and 6to4. */
export const tunnels = ['2001::/32', '2002::/16'];

/** Reads `1.2.3.4`, `10.0.0.0/8`, `2001:db8::1` or `2001:db8::/32`; undefined when the text is neither. */
export function parseBlock(text: string): Block | undefined {
  const [address = '', bitsText, ...rest] = text.split('/');
  const octets = parseAddress(address);
  if (!octets || rest.length > 0) return undefined;
  const version = octets.length === 4 ? 4 : 6;
  if (bitsText === undefined) return { text, version, octets, bits: octets.length * 8 };
  const bits = /^\d{1,3}$/.test(bitsText) ? Number(bitsText) : Number.NaN;
  return bits <= octets.length * 8 ? { text, version, octets, bits } : undefined;
}

/** The 4 or 16 octets of an address in its usual notation; undefined for anything else, IPv6 zones included. */
export function parseAddress(text: string): Uint8Array | undefined {
  if (isIPv4(text)) return Uint8Array.from(text.split('.'), Number);
  if (!isIPv6(text) || text.includes('%')) return undefined;
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
  const plain = dotted ? `${dotted[1]}${pair(dotted[2], dotted[3])}:${pair(dotted[4], dotted[5])}` : text;
  const [head = '', tail] = plain.split('::');
  const groups = (part: string) => (part === '' ? [] : part.split(':').map(group => Number.parseInt(group, 16)));
  const [first, last] = [groups(head), tail === undefined ? [] : groups(tail)];
  const all = [...first, ...new Array<number>(8 - first.length - last.length).fill(0), ...last];
  return Uint8Array.from(all.flatMap(group => [group >> 8, group & 255]));
}

/** The usual notation of 4 or 16 octets; in IPv6 without the longest run of zeros (RFC 5952). */
export function addressText(octets: Uint8Array): string {
  if (octets.length === 4) return octets.join('.');
  const groups = Array.from({ length: 8 }, (_, at) =>
    (((octets[2 * at] ?? 0) << 8) | (octets[2 * at + 1] ?? 0)).toString(16),
  );
  return new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1);
}

function pair(high = '', low = ''): string {
  return ((Number(high) << 8) | Number(low)).toString(16);
}

/** Says whether the block holds the address, given as octets. */
export function contains(block: Block, octets: Uint8Array): boolean {
  if (block.octets.length !== octets.length) return false;
  const whole = block.bits >> 3;
  for (let i = 0; i < whole; i++) if (block.octets[i] !== octets[i]) return false;
  const mask = 0xff00 >> (block.bits & 7);
  return ((block.octets[whole] ?? 0) & mask & 0xff) === ((octets[whole] ?? 0) & mask & 0xff);
}

const protectedBlocks = protectedNetworks.map(mustParse);
const globalBlock = mustParse(globalUnicast);
const tunnelBlocks = tunnels.map(mustParse);

/** The protected range that the address is in, as text; undefined when sandboxes may reach it. */
export function protectedRange(octets: Uint8Array): string | undefined {
  if (octets.length === 4) return protectedBlocks.find(block => contains(block, octets))?.text;
  if (!contains(globalBlock, octets)) return `outside of ${globalUnicast}`;
  return tunnelBlocks.find(block => contains(block, octets))?.text;
}

/**
 * Why the platform itself does not connect to an address that a stranger chose; undefined for the Internet at large.
 */
export function forbiddenRange(address: string): string | undefined {
  const octets = parseAddress(address.split('%')[0] ?? '');
  if (!octets) return 'not an address';
  return protectedRange(octets) ?? (isOfMachine(octets) ? 'an address of this machine' : undefined);
}

/**
 * Says whether an address belongs to this machine: its public ones would be reached past the firewall in front of it.
 */
export function isOfMachine(octets: Uint8Array, interfaces = networkInterfaces()): boolean {
  return Object.values(interfaces).some(list =>
    list?.some(({ address }) => sameOctets(parseAddress(address.split('%')[0] ?? ''), octets)),
  );
}

function sameOctets(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a?.length === b.length && a.every((octet, index) => octet === b[index]);
}

function mustParse(text: string): Block {
  const block = parseBlock(text);
  if (!block) throw new Error(`not a block: ${text}`);
  return block;
}

const label = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;
const nameCharactersMax = 253;

/** Says whether a text is a DNS host name in ASCII whose last label can't be the end of an address. */
export function isHostName(text: string): boolean {
  if (text.length > nameCharactersMax) return false;
  const labels = text.toLowerCase().split('.');
  return labels.every(part => label.test(part)) && !/^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? '');
}

/** `example.com`, `*.example.com` (any depth, not `example.com` itself), or `*`. */
export function isDomainPattern(text: string): boolean {
  return text === '*' || isHostName(text.startsWith('*.') ? text.slice(2) : text);
}

/** Says whether a domain pattern covers a host name. Both in lower case, without a final dot. */
export function coversName(pattern: string, name: string): boolean {
  if (pattern === '*') return true;
  return pattern.startsWith('*.')
    ? name.endsWith(pattern.slice(1)) && name.length > pattern.length - 1
    : name === pattern;
}

/** The host name in the form that rules are compared in; undefined for anything else, addresses included. */
export function normalName(text: string): string | undefined {
  const name = text.endsWith('.') ? text.slice(0, -1) : text;
  return isHostName(name) ? name.toLowerCase() : undefined;
}

/** Splits `host:port` (an IPv6 host in brackets). The port is undefined when missing or out of range. */
export function splitHostPort(text: string): { host: string; port: number | undefined } {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d{1,5}))?$/.exec(text);
  const port = Number(match?.[3]);
  return { host: match?.[1] ?? match?.[2] ?? '', port: port >= 1 && port <= 65_535 ? port : undefined };
}
