import { attempts, type Attempt } from './attempt.ts';

// What a link carries besides proper IPv4 packets. The host answers none of it and believes none of it.

const arpTargets = {
  'the gateway': 'GATEWAY',
  'the host': 'HOST',
  "the host's public address": 'HOST_PUBLIC',
  "the host's loopback": "'127.0.0.1'",
  'a neighbour of the host': "'10.0.0.5'",
  'the way to the internet': "'192.0.2.1'",
  'the proxy': 'PROXY',
  'the platform': 'PLATFORM',
  'another sandbox': 'slot(0)',
  'another sandbox, the next': 'slot(1)',
  'what the proxy connects from': 'proxy_source(0)',
  metadata: "'169.254.169.254'",
  ourselves: 'SELF',
  nobody: "'0.0.0.0'",
  everybody: "'255.255.255.255'",
};

const arp: Record<string, string> = {
  ...Object.fromEntries(
    Object.entries(arpTargets).map(([name, target]) => [
      `ARP: who is ${name}?`,
      `hears(arp(${target}), arp(${target}, to=GATEWAY_MAC))`,
    ]),
  ),
  'ARP: a probe without a sender': "hears(arp(HOST, sender='0.0.0.0'), arp(GATEWAY, sender='0.0.0.0'))",
  "ARP: a question in another's name":
    "hears(*[arp(HOST, sender=slot(n)) for n in range(4)], arp(HOST, sender='192.0.2.1'), arp(HOST, sender=HOST))",
  'ARP: answers that nobody asked for':
    "hears(*[arp(a, 2, sender=a, to=GATEWAY_MAC, target_mac=GATEWAY_MAC) for a in ('192.0.2.1', HOST, GATEWAY, slot(0), RESOLVER)])",
  'ARP: announcements':
    "hears(*[arp(a, 1, sender=a) for a in ('192.0.2.1', HOST, GATEWAY, slot(0))], *[arp(a, 2, sender=a) for a in ('192.0.2.1', HOST)])",
  'ARP: a thousand senders':
    "hears(*[arp(HOST, sender=f'203.0.{n >> 8}.{n & 255}', sender_mac=bytes([2, 0, 0, 0, n >> 8, n & 255])) for n in range(1000)])",
  'ARP: a thousand announcements':
    "hears(*[arp(f'192.0.2.{n & 255}', 1, sender=f'192.0.2.{n & 255}', sender_mac=bytes([2, 0, 0, 1, n >> 8, n & 255])) for n in range(1000)])",
  'ARP: another kind of hardware': 'hears(*[arp(HOST, hardware=h) for h in (6, 7, 15, 24, 32)])',
  'ARP: another protocol': 'hears(arp(HOST, protocol=0x86dd), arp(HOST, protocol=0x0806))',
  'ARP: sizes that lie': 'hears(arp(HOST, sizes=(255, 255)), arp(HOST, sizes=(0, 0)), arp(HOST, sizes=(4, 6)))',
  'ARP: cut short': 'hears(*[arp(HOST)[:n] for n in (15, 20, 28, 41)])',
  'ARP: too long': 'hears(arp(HOST) + bytes(1400))',
  'ARP: every operation': 'hears(*[arp(HOST, operation=n) for n in range(3, 26)])',
  'ARP: reverse': "hears(arp('0.0.0.0', 3, sender='0.0.0.0', kind=0x8035))",
  'ARP: within a VLAN':
    "hears(*[eth(struct.pack('>HH', v, 0x0806) + arp(HOST)[14:], 0x8100, EVERYBODY) for v in (0, 1, 4095)])",
  'ARP: by a socket of its own':
    "s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM); s.sendto(arp(HOST)[14:], ('eth0', 0x0806, 0, 1, EVERYBODY)); hears()",
};

const kinds: Record<string, number> = {
  'Wake-on-LAN': 0x0842,
  TRILL: 0x22f3,
  'stream reservation': 0x22ea,
  DECnet: 0x6003,
  LAT: 0x6004,
  AppleTalk: 0x809b,
  'AppleTalk ARP': 0x80f3,
  IPX: 0x8137,
  QNX: 0x8204,
  'a pause of the link': 0x8808,
  LACP: 0x8809,
  CobraNet: 0x8819,
  MPLS: 0x8847,
  'MPLS to many': 0x8848,
  'PPPoE discovery': 0x8863,
  'PPPoE session': 0x8864,
  HomePlug: 0x887b,
  '802.1X': 0x888e,
  PROFINET: 0x8892,
  HyperSCSI: 0x889a,
  'ATA over Ethernet': 0x88a2,
  EtherCAT: 0x88a4,
  Powerlink: 0x88ab,
  GOOSE: 0x88b8,
  experiments: 0x88b5,
  'experiments, the other': 0x88b6,
  LLDP: 0x88cc,
  SERCOS: 0x88cd,
  TIPC: 0x88ca,
  WSMP: 0x88dc,
  'HomePlug AV': 0x88e1,
  MACsec: 0x88e5,
  'provider bridges': 0x88e7,
  PTP: 0x88f7,
  redundancy: 0x88fb,
  'connectivity faults': 0x8902,
  'Fibre Channel': 0x8906,
  'FCoE initialisation': 0x8914,
  RoCE: 0x8915,
  NSH: 0x894f,
  loopback: 0x9000,
  batman: 0x4305,
  CAN: 0x000c,
  'X.25': 0x0805,
  'IEEE PUP': 0x0a00,
  'a kind that nobody has': 0xfffe,
};

const frames: Record<string, string> = {
  ...Object.fromEntries(
    Object.entries(kinds).map(([name, kind]) => [
      `frames of ${name}`,
      `p = ip(OTHER, datagram()); hears(eth(p, ${kind}), eth(bytes(4) + p, ${kind}), eth(p, ${kind}, EVERYBODY), eth(bytes(46), ${kind}, bytes.fromhex('0180c200000e')), wait=0.15)`,
    ]),
  ),
  'MPLS with IPv4 inside': "hears(eth(b'\\0\\x01\\x01\\x40' + ip(OTHER, datagram()), 0x8847))",
  'PPPoE with IPv4 inside':
    "p = ip(OTHER, datagram()); hears(eth(struct.pack('>BBHHH', 0x11, 0, 1, len(p) + 2, 0x21) + p, 0x8864))",
  'a spanning tree': "hears(eth(b'\\x42\\x42\\x03' + bytes(35), 38, bytes.fromhex('0180c2000000')))",
  CDP: "hears(eth(b'\\xaa\\xaa\\x03\\0\\0\\x0c\\x20\\0' + bytes(40), 48, bytes.fromhex('01000ccccccc')))",
  'IPv4 by SNAP': "p = ip(OTHER, datagram()); hears(eth(b'\\xaa\\xaa\\x03\\0\\0\\0\\x08\\0' + p, len(p) + 8))",
  'NetBIOS by LLC': "hears(eth(b'\\xf0\\xf0\\x03' + bytes(43), 46, bytes.fromhex('030000000001')))",
  'a frame without content': "hears(GATEWAY_MAC + SELF_MAC + b'\\x08\\0', GATEWAY_MAC + SELF_MAC + b'\\x08\\x06')",
  "from the gateway's card": 'hears(eth(ip(OTHER, datagram()), 0x0800, source=GATEWAY_MAC))',
  "from everybody's card": 'hears(eth(ip(OTHER, datagram()), 0x0800, source=EVERYBODY))',
  'to a group': "hears(eth(ip('224.0.0.1', datagram()), 0x0800, bytes.fromhex('01005e000001')))",
  ...Object.fromEntries(
    [0, 1, 2, 100, 4094, 4095].flatMap(vlan => [
      [
        `a frame in VLAN ${vlan}`,
        `hears(eth(struct.pack('>HH', ${vlan}, 0x0800) + ip(OTHER, datagram()), 0x8100), eth(struct.pack('>HH', ${vlan}, 0x0800) + ip(HOST, datagram()), 0x8100))`,
      ],
      [
        `a frame in service VLAN ${vlan}`,
        `hears(eth(struct.pack('>HH', ${vlan}, 0x0800) + ip(OTHER, datagram()), 0x88a8))`,
      ],
    ]),
  ),
  'a frame in a VLAN of high priority':
    "hears(eth(struct.pack('>HH', 0xe000, 0x0800) + ip(OTHER, datagram()), 0x8100))",
  'a frame in three VLANs':
    "hears(eth(struct.pack('>HHHHHH', 1, 0x8100, 2, 0x8100, 3, 0x0800) + ip(OTHER, datagram()), 0x8100))",
  'a frame in an old VLAN of VLANs':
    "hears(eth(struct.pack('>HHHH', 1, 0x8100, 0, 0x0800) + ip(OTHER, datagram()), 0x9100))",
  'IPv6 in VLAN 0':
    "hears(eth(struct.pack('>HH', 0, 0x86dd) + ip6(datagram(), 17, destination='2001:db8::1'), 0x8100))",
  'a VLAN device':
    "run('ip link add link eth0 name eth0.5 type vlan id 5 && ip link set eth0.5 up && ip addr add 10.5.0.1/24 dev eth0.5'); tcp(OTHER, 7000)",
  'a bridge': "run('ip link add br0 type bridge && ip link set eth0 master br0'); tcp(OTHER, 7000)",
  'a macvlan': "run('ip link add m0 link eth0 type macvlan mode bridge && ip link set m0 up'); tcp(OTHER, 7000)",
  'ARP switched on again':
    "run('ip link set eth0 arp on; ip neigh flush dev eth0; arping -c 1 192.0.2.2'); tcp(OTHER, 7000)",
  promiscuous:
    "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); s.bind(('eth0', 3)); s.setsockopt(263, 1, struct.pack('iHH8s', 2, 1, 0, b'')); hears(wait=0.6)",
};

const routers = "'2001:db8::', struct.pack('>BBBBIII', 3, 4, 64, 0xc0, 1800, 1800, 0)";
const ipv6: Record<string, string> = {
  'ND: a question for the host':
    "hears(icmp6(135, bytes(4) + socket.inet_pton(10, 'fe80::a0:11ff:fe00:22') + b'\\1\\1' + SELF_MAC, destination='ff02::1:ff00:22'))",
  'ND: a question for all of its addresses':
    "hears(*[icmp6(135, bytes(4) + socket.inet_pton(10, f'fe80::{n:x}'), destination='ff02::1') for n in range(64)])",
  'ND: an answer that nobody asked for':
    "hears(icmp6(136, b'\\x60\\0\\0\\0' + socket.inet_pton(10, 'fe80::1') + b'\\2\\1' + SELF_MAC))",
  'ND: a thousand neighbours':
    "hears(*[icmp6(136, b'\\x60\\0\\0\\0' + socket.inet_pton(10, f'fe80::{n:x}') + b'\\2\\1' + SELF_MAC, source=f'fe80::{n:x}') for n in range(1, 1001)])",
  'ND: a redirect':
    "hears(icmp6(137, bytes(4) + socket.inet_pton(10, 'fe80::21') + socket.inet_pton(10, '2001:db8::1'), destination='fe80::a0:11ff:fe00:22'))",
  'ND: is a router there?': "hears(icmp6(133, bytes(4) + b'\\1\\1' + SELF_MAC, destination='ff02::2'))",
  'RA: we are a router': `hears(icmp6(134, struct.pack('>BBHII', 64, 0, 1800, 0, 0) + (lambda p, o: o + socket.inet_pton(10, p))(${routers})))`,
  'RA: with a name server':
    "hears(icmp6(134, struct.pack('>BBHII', 64, 0, 1800, 0, 0) + struct.pack('>BBHI', 25, 3, 0, 1800) + socket.inet_pton(10, '2001:db8::53')))",
  'RA: with a route to everything':
    "hears(icmp6(134, struct.pack('>BBHII', 64, 8, 1800, 0, 0) + struct.pack('>BBBBI', 24, 1, 0, 8, 1800)))",
  'RA: managed addresses': "hears(icmp6(134, struct.pack('>BBHII', 64, 0xc0, 1800, 0, 0)))",
  'RA: from the gateway': "hears(icmp6(134, struct.pack('>BBHII', 64, 0, 1800, 0, 0), source='fe80::a0:11ff:fe00:22'))",
  'MLD: a report':
    "hears(icmp6(143, bytes(2) + b'\\0\\1' + struct.pack('>BBH', 4, 0, 0) + socket.inet_pton(10, 'ff02::fb'), destination='ff02::16', hops=1))",
  DHCPv6:
    "hears(eth(ip6(struct.pack('>4H', 546, 547, 12, 0) + b'\\1\\0\\0\\7', 17, destination='ff02::1:2'), 0x86dd, bytes.fromhex('333300010002')))",
  'ping everybody by IPv6': "hears(icmp6(128, bytes(4) + b'carried out'))",
  'ping the routers by IPv6': "hears(icmp6(128, bytes(4), destination='ff02::2'))",
  'ping the host by IPv6': "hears(icmp6(128, bytes(4), destination='fe80::a0:11ff:fe00:22'))",
  'TCP to the host by IPv6':
    "hears(eth(ip6(segment('0.0.0.0', port=3000), 6, destination='fe80::a0:11ff:fe00:22'), 0x86dd))",
  'mDNS by IPv6':
    "hears(eth(ip6(datagram(port=5353), 17, destination='ff02::fb'), 0x86dd, bytes.fromhex('3333000000fb')))",
  'LLMNR by IPv6':
    "hears(eth(ip6(datagram(port=5355), 17, destination='ff02::1:3'), 0x86dd, bytes.fromhex('333300010003')))",
  'hop-by-hop options': "hears(eth(ip6(b'\\x3a\\0\\5\\2\\0\\0\\1\\0' + b'\\x80\\0\\0\\0\\0\\0\\0\\0', 0), 0x86dd))",
  'a routing header':
    "hears(eth(ip6(b'\\x11\\2\\0\\1' + bytes(4) + socket.inet_pton(10, '2001:db8::1') + datagram(), 43, destination='fe80::22'), 0x86dd))",
  'fragments by IPv6':
    "hears(eth(ip6(b'\\x11\\0\\0\\1\\0\\0\\0\\7' + bytes(16), 44, destination='2001:db8::1'), 0x86dd))",
  'a jumbo packet': "hears(eth(b'\\x60\\0\\0\\0\\0\\0\\0\\xff' + bytes(32) + b'\\x3a\\0\\xc2\\4\\0\\1\\0\\0', 0x86dd))",
  'IPv4 in IPv6': "hears(eth(ip6(ip(OTHER, datagram()), 4, destination='2001:db8::1'), 0x86dd))",
  'GRE in IPv6': "hears(eth(ip6(b'\\0\\0\\x08\\0' + ip(OTHER, datagram()), 47, destination='2001:db8::1'), 0x86dd))",
  'a mapped address as destination': "hears(eth(ip6(datagram(), 17, destination='::ffff:203.0.113.11'), 0x86dd))",
  'a translated address (NAT64)': "hears(eth(ip6(datagram(), 17, destination='64:ff9b::203.0.113.11'), 0x86dd))",
  'switched on':
    "run('sysctl -w net.ipv6.conf.eth0.disable_ipv6=0; echo 0 > /proc/sys/net/ipv6/conf/all/disable_ipv6; ip -6 addr add 2001:db8::2/64 dev eth0; ip -6 route add default via fe80::22 dev eth0'); tcp('2001:db8::1', 80)",
  'a socket to the link':
    "s = socket.socket(socket.AF_INET6); s.settimeout(WAIT); s.connect(('fe80::a0:11ff:fe00:22', 3000, 0, 2))",
  'a datagram to the link':
    "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.sendto(b'x', ('ff02::1', 7000, 0, 2))",
  '6to4': "raw(ip('192.88.99.1', ip6(datagram(), 17, destination='2002:cb00:710b::1'), protocol=41))",
  '6in4 to a broker': "raw(ip(ATTACKER, ip6(datagram(), 17, destination='2001:db8::1'), protocol=41))",
  'Teredo, a whole packet': "udp(ATTACKER, 3544, ip6(datagram(), 17, destination='2001::1'))",
  ISATAP: "raw(ip(ATTACKER, ip6(datagram(), 17, destination='fe80::5efe:cb00:7142'), protocol=41))",
  AYIYA: "udp(ATTACKER, 5072, bytes(44) + ip6(b'', 59))",
};

export const links: Attempt[] = [
  ...attempts('names', 'link', { ...arp, ...frames }),
  ...attempts('names', 'IPv6', ipv6),
];
