import { attempts, type Attempt } from './attempt.ts';

// Packets that are not what they claim to be: from somebody else, in pieces, or with nowhere to go.

const sources = {
  'the host': 'HOST',
  "the host's public address": 'HOST_PUBLIC',
  'the gateway': 'GATEWAY',
  'the next hop of the host': "'192.0.2.1'",
  'another sandbox': 'slot(0)',
  'the next sandbox': 'slot(1)',
  'the proxy': 'PROXY',
  'what the proxy connects from': 'proxy_source(0)',
  'the platform': 'PLATFORM',
  'an allowed site': 'ALLOWED',
  'the resolver': 'RESOLVER',
  metadata: "'169.254.169.254'",
  'a private network': "'10.0.0.5'",
  'a home network': "'192.168.1.5'",
  'a carrier': "'100.64.0.5'",
  loopback: "'127.0.0.1'",
  'a group': "'224.0.0.1'",
  everybody: "'255.255.255.255'",
  nobody: "'0.0.0.0'",
  'a reserved address': "'240.0.0.1'",
  'our neighbour on the link': "'169.254.0.20'",
  'our network': "'169.254.0.23'",
};

const forged = Object.fromEntries(
  Object.entries(sources).flatMap(([name, source]) => [
    [
      `a datagram from ${name}`,
      `for d in (OTHER, RESOLVER, ALLOWED): frame(ip(d, datagram(port=53), source=${source})); frame(ip(d, datagram(), source=${source}))`,
    ],
    [
      `a connection from ${name}`,
      `for d in (OTHER, ALLOWED): frame(ip(d, segment(d, port=443, source=${source}), protocol=6, source=${source})); frame(ip(d, segment(d, port=443, flags=0x10, source=${source}, data=b'x'), protocol=6, source=${source}))`,
    ],
    [
      `to the host from ${name}`,
      `hears(*[eth(ip(d, segment(d, port=3000, source=${source}), protocol=6, source=${source}), 0x0800) for d in (HOST, GATEWAY, PROXY)])`,
    ],
  ]),
);

const pieces: Record<string, string> = {
  'a fragment of eight octets':
    "g = segment(OTHER, port=7000, data=b'x' * 20); raw(*[ip(OTHER, g[n:n + 8], protocol=6, fragment=(0x2000 if n + 8 < len(g) else 0) | n // 8) for n in range(0, len(g), 8)])",
  'fragments in reverse':
    "d = datagram(b'x' * 64); raw(ip(ATTACKER, d[24:], fragment=3), ip(ATTACKER, d[:24], fragment=0x2000))",
  'fragments to an allowed name server, then more':
    "q = datagram(question('other.test'), port=53); raw(ip(RESOLVER, q[:24], fragment=0x2000), ip(RESOLVER, q[24:], fragment=3))",
  'overlapping fragments: another port from behind':
    "a, b = datagram(b'y' * 40, port=53), datagram(b'x' * 40, port=7000); raw(ip(OTHER, b[:32], fragment=0x2000), ip(OTHER, a[:16], fragment=0x2000), ip(OTHER, a[32:], fragment=4))",
  'a teardrop': 'raw(ip(OTHER, bytes(36), fragment=0x2000), ip(OTHER, bytes(4), fragment=3))',
  'a fragment beyond the end': 'raw(ip(OTHER, bytes(64), fragment=0x1fff), ip(OTHER, bytes(1400), fragment=0x3ff0))',
  'fragments that must not be': 'raw(ip(OTHER, bytes(64), fragment=0x6000), ip(OTHER, bytes(64), fragment=0x4001))',
  'a fragment with the evil bit': 'raw(ip(OTHER, datagram(), fragment=0x8000))',
  'fragments of a ping':
    "b = struct.pack('>BBHHH', 8, 0, 0, 1, 1) + bytes(64); raw(ip(OTHER, b[:32], protocol=1, fragment=0x2000), ip(OTHER, b[32:], protocol=1, fragment=4))",
  'fragments of GRE':
    'raw(ip(ATTACKER, bytes(32), protocol=47, fragment=0x2000), ip(ATTACKER, bytes(32), protocol=47, fragment=4))',
  'fragments to the host': 'raw(ip(HOST, bytes(64), fragment=0x2000), ip(GATEWAY, bytes(64), fragment=8)); hears()',
  'the begin of a packet to the host, of which it tells when its time is over':
    "raw(ip(HOST, b'carried out' * 4, fragment=0x2000), ip(GATEWAY, b'carried out' * 4, fragment=0x2000)); time.sleep(33)",
  'two thousand begins of packets':
    'raw(*[ip(OTHER, bytes(1400), identifier=n, fragment=0x2000) for n in range(2000)])',
  'two thousand ends of packets': 'raw(*[ip(OTHER, bytes(64), identifier=n, fragment=100) for n in range(2000)])',
  'the same fragment many times':
    'raw(*[ip(OTHER, datagram(bytes(64)), identifier=5, fragment=0x2000) for n in range(500)])',
};

const odd: Record<string, string> = {
  ...Object.fromEntries(
    [1, 2, 3, 5, 30].map(ttl => [
      `a time to live of ${ttl}`,
      `hears(eth(ip(OTHER, datagram(), ttl=${ttl}), 0x0800), eth(ip(ALLOWED, segment(ALLOWED), protocol=6, ttl=${ttl}), 0x0800))`,
    ]),
  ),
  'a time to live of one, to all kinds of places':
    "hears(*[eth(ip(d, datagram(), ttl=1), 0x0800) for d in (OTHER, ALLOWED, RESOLVER, HOST, HOST_PUBLIC, '10.0.0.5', GATEWAY, PROXY, slot(0))], *[eth(ip(d, struct.pack('>BBHHH', 8, 0, 0xf7fe, 0, 0), protocol=1, ttl=1), 0x0800) for d in (OTHER, ALLOWED)])",
  'a time to live of none': 'hears(eth(ip(OTHER, datagram(), ttl=0), 0x0800))',
  'a packet larger than the link':
    's = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(0, 10, 2); s.sendto(bytes(1472), (OTHER, 7000)); hears()',
  'version 5': 'p = bytearray(ip(OTHER, datagram())); p[0] = 0x55; hears(eth(bytes(p), 0x0800))',
  'a header of four words': 'p = bytearray(ip(OTHER, datagram())); p[0] = 0x44; hears(eth(bytes(p), 0x0800))',
  'a wrong sum': 'p = bytearray(ip(OTHER, datagram())); p[10] ^= 1; hears(eth(bytes(p), 0x0800))',
  'router alert':
    "hears(eth(ip('224.0.0.2', bytes([0x16, 0, 9, 4, 224, 0, 0, 5]), protocol=2, options=bytes([0x94, 4, 0, 0])), 0x0800))",
  'timestamps of the hosts on the way':
    'hears(eth(ip(RESOLVER, datagram(port=53), options=bytes([68, 12, 5, 1]) + bytes(8)), 0x0800), eth(ip(HOST, datagram(), options=bytes([68, 12, 5, 1]) + bytes(8)), 0x0800))',
  'joining groups':
    "raw(*[ip('224.0.0.22', bytes([0x22, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 239, 1, 1, n]), protocol=2) for n in range(200)])",
  OSPF: "raw(ip('224.0.0.5', bytes(44), protocol=89))",
  VRRP: "raw(ip('224.0.0.18', bytes(20), protocol=112))",
  RIP: "udp('224.0.0.9', 520, bytes(24))",
  'DHCP from nowhere':
    "hears(eth(ip('255.255.255.255', struct.pack('>4H', 68, 67, 252, 0) + b'\\1\\1\\6\\0' + bytes(240), source='0.0.0.0'), 0x0800, EVERYBODY))",
  'DHCP answers':
    "hears(eth(ip('255.255.255.255', struct.pack('>4H', 67, 68, 252, 0) + b'\\2\\1\\6\\0' + bytes(240)), 0x0800, EVERYBODY))",
  "ICMP: unreachable, about others' connections":
    "raw(*[ip(d, struct.pack('>BBHI', 3, c, 0, 0) + ip(OTHER, segment(OTHER)[:8], protocol=6, source=d), protocol=1) for d in (OTHER, ALLOWED, HOST) for c in (0, 1, 3, 4)])",
  'ICMP: fragmentation needed, of 68 octets':
    "raw(*[ip(d, struct.pack('>BBHHH', 3, 4, 0, 0, 68) + ip(OTHER, segment(OTHER)[:8], protocol=6, source=d), protocol=1) for d in (HOST, ALLOWED)])",
  'ICMP: timestamps and masks':
    "hears(*[eth(ip(d, struct.pack('>BBHHH', k, 0, checksum(struct.pack('>BBHHH', k, 0, 0, 1, 1) + bytes(12)), 1, 1) + bytes(12), protocol=1), 0x0800) for d in (HOST, GATEWAY, HOST_PUBLIC) for k in (13, 15, 17)])",
  'ICMP: redirects from a router':
    "raw(*[ip(HOST, struct.pack('>BBH4s', 5, c, 0, socket.inet_aton(SELF)) + ip(OTHER, datagram(), source=HOST), protocol=1) for c in range(4)])",
  'a flood of first segments':
    'raw(*[ip(OTHER, segment(OTHER, port=443, source_port=1024 + n), protocol=6) for n in range(3000)])',
  'a flood of datagrams to everywhere':
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); many(4000, lambda n: s.sendto(b'x', (f'203.0.113.{100 + n % 99}', 1024 + n)))",
};

export const forgery: Attempt[] = attempts('names', 'forged', { ...forged, ...pieces, ...odd });
