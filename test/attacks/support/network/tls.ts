import { attempts } from './attempt.ts';

const ech =
  "extension(0xfe0d, b'\\0' + bytes(4) + struct.pack('>H', 32) + bytes(range(32)) + struct.pack('>H', 64) + bytes(64))";

/** Past the names, by TLS. */
export const tls = attempts('names', 'TLS', {
  'a server name of another site': "tls(OTHER, 'other.test')",
  'a server name of another site, at an allowed address': "tls(ALLOWED, 'other.test')",
  'an allowed server name, at another address':
    "tcp(OTHER, 443, hello(server_names('other.test')) + hello(server_names('allowed.test')))",
  'no server name': 'tcp(OTHER, 443, hello())',
  'no server name, at an allowed address': 'tcp(ALLOWED, 443, hello())',
  'an address as server name':
    "tcp(OTHER, 443, hello(server_names(OTHER))); tcp(OTHER, 443, hello(server_names('0xcb00710b')))",
  'an empty server name': "tcp(ALLOWED, 443, hello(server_names('')))",
  'two names, the allowed one first': "tcp(ALLOWED, 443, hello(server_names('allowed.test', 'other.test')))",
  'two names, the allowed one last': "tcp(OTHER, 443, hello(server_names('other.test', 'allowed.test')))",
  'two extensions, the allowed name first':
    "tcp(ALLOWED, 443, hello(server_names('allowed.test'), server_names('other.test')))",
  'two extensions, the allowed name last':
    "tcp(OTHER, 443, hello(server_names('other.test'), server_names('allowed.test')))",
  'a name of another kind': "tcp(ALLOWED, 443, hello(server_names('allowed.test', kind=1)))",
  'a NUL in the name': "tcp(ALLOWED, 443, hello(server_names(b'other.test\\0.wild.test')))",
  'a blank in the name': "tcp(ALLOWED, 443, hello(server_names('other.test .wild.test')))",
  'a name that ends like an allowed one': "tls(ATTACKER, 'xwild.test')",
  'a name that begins like an allowed one': "tls(ATTACKER, 'allowed.test.attacker.test')",
  'a name below an exact one': "tls(ALLOWED, 'www.allowed.test')",
  'the name above a pattern': "tls(WILD, 'wild.test')",
  'two final dots': "tcp(ALLOWED, 443, hello(server_names('allowed.test..')))",
  'octet by octet': "tcp(OTHER, 443, pieces=[bytes([b]) for b in hello(server_names('other.test'))], pause=0.002)",
  'octet by octet in records':
    "tcp(OTHER, 443, b''.join(record(bytes([b])) for b in message([server_names('other.test')])))",
  'the name parted by records':
    "m = message([server_names('other.test')]); at = m.index(b'other') + 2; tcp(OTHER, 443, record(m[:at]) + record(m[at:]))",
  'the name after many extensions':
    "tcp(OTHER, 443, hello(*[extension(0x1000 + n, bytes(100)) for n in range(100)], server_names('other.test')))",
  'the name behind padding, out of sight':
    "tcp(OTHER, 443, pieces=[record(p) for p in (lambda m: [m[i:i + 16000] for i in range(0, len(m), 16000)])(message([extension(21, bytes(60000)), server_names('other.test')]))])",
  'a record of another kind first': "tcp(OTHER, 443, record(b'\\x01', kind=20) + hello(server_names('other.test')))",
  'an alert first': "tcp(OTHER, 443, record(b'\\x01\\x00', kind=21) + hello(server_names('other.test')))",
  'an empty record first': "tcp(OTHER, 443, record(b'') + hello(server_names('other.test')))",
  'a record between the parts':
    "m = message([server_names('allowed.test')]); tcp(OTHER, 443, record(m[:40]) + record(b'\\x01', kind=20) + record(m[40:]))",
  'a message of another kind first': "tcp(OTHER, 443, record(b'\\0\\0\\0\\0' + message([server_names('other.test')])))",
  'two messages in a record':
    "tcp(OTHER, 443, record(message([server_names('allowed.test')]) + message([server_names('other.test')])))",
  'a length that lies':
    "m = bytearray(hello(server_names('other.test'))); m[3:5] = b'\\0\\x10'; tcp(OTHER, 443, bytes(m))",
  'an extension that is longer than the message':
    "tcp(OTHER, 443, record(message([struct.pack('>HH', 0x1234, 60000)])))",
  'SSL 2': 'tcp(OTHER, 443, bytes([0x80, 46, 1, 3, 1, 0, 21, 0, 0, 0, 16]) + bytes(37))',
  'an unknown version': "tcp(OTHER, 443, record(message([server_names('other.test')]), version=b'\\x05\\x05'))",
  'an encrypted hello behind another name': `tcp(OTHER, 443, hello(server_names('other.test'), ${ech}))`,
  'an encrypted hello behind no name': `tcp(ALLOWED, 443, hello(${ech}))`,
  // What follows an allowed name is inspected: with a request for another host in it, nothing arrives.
  'an encrypted hello behind an allowed name': `tcp(ALLOWED, 443, hello(server_names('allowed.test'), ${ech}))`,
  'an encrypted server name, as it once was':
    "tcp(ALLOWED, 443, hello(server_names('allowed.test'), extension(0xffce, bytes(100))))",
  'plain HTTP on port 443': "get(ALLOWED, 'allowed.test', port=443); get(OTHER, 'other.test', port=443)",
  'SSH on port 443': "tcp(OTHER, 443, b'SSH-2.0-OpenSSH_9.2\\r\\n')",
  'OpenVPN on port 443': "tcp(ATTACKER, 443, b'\\x00\\x0e\\x38' + bytes(13))",
  'SOCKS on port 443': "tcp(ATTACKER, 443, b'\\x05\\x01\\x00')",
  'nothing, and then something, on port 443':
    "tcp(OTHER, 443, pieces=[b'', hello(server_names('other.test'))], pause=1.3)",
  'an allowed name, and then another hello':
    "s = socket.create_connection((OTHER, 443), WAIT); s.settimeout(WAIT); s.sendall(hello(server_names('allowed.test'))); s.recv(4000); s.sendall(hello(server_names('other.test'))); drain(s)",
  'half of a hello': "tcp(OTHER, 443, hello(server_names('other.test'))[:60])",
  'a server name with an address of private use behind it': "tls(ALLOWED, 'private.wild.test')",
});
