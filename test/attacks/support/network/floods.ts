import { hostileServer } from '../../../egress/support/addresses.ts';
import { hostileShapes } from '../../../egress/support/hostile-server.ts';
import { attempts, type Attempt } from './attempt.ts';

// Floods that would stop or fill the proxies that sandboxes share: the same processes must still serve others.

const head = (fields: string) => `b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n' + ${fields} + b'\\r\\n\\r\\n'`;
const heads: Record<string, string> = {
  'a field of blanks': head("b'X: a' + b' ' * 60000 + b'b'"),
  'a field of tabs': head("b'X: a' + b'\\t' * 60000 + b'b'"),
  'many fields of blanks': head("b''.join(b'X: a' + b' ' * 300 + b'b\\r\\n' for _ in range(180)) + b'Y: z'"),
  'a field that begins with blanks': head("b'X:' + b' ' * 60000 + b'b'"),
  'a field of blanks below the limit': head("b'X: a' + b' ' * 15000 + b'b'"),
  'a field of commas': head("b'Connection: ' + b',' * 60000"),
  'a field of commas below the limit': head("b'Connection: ' + b',' * 15000"),
  'ten thousand fields': head("b'a:\\r\\n' * 10000 + b'b:'"),
  'a field without a name': head("b':' * 60000"),
  'a name of sixty thousand octets': head("b'x' * 60000 + b': y'"),
  'a Host of sixty thousand labels': "b'GET / HTTP/1.1\\r\\nHost: ' + b'a.' * 30000 + b'\\r\\n\\r\\n'",
  'a Host of hyphens': "b'GET / HTTP/1.1\\r\\nHost: ' + b'-' * 15000 + b'\\r\\n\\r\\n'",
  'a target of sixty thousand octets': "b'GET /' + b'/' * 60000 + b' HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n'",
  'an absolute target of slashes': "b'GET http://' + b'/' * 15000 + b' HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n'",
  'a method of sixty thousand octets': "b'A' * 60000 + b' / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n'",
  'line ends and nothing else': "b'\\r\\n' * 30000",
  'carriage returns and nothing else': "b'\\r' * 60000 + b'x'",
  'requests one after the other': "b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n' * 2000",
  'chunks of one octet':
    "b'POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n' + b'1\\r\\nx\\r\\n' * 20000 + b'0\\r\\n\\r\\n'",
  'chunks with long extensions':
    "b'POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n' + (b'1;' + b'x' * 8000 + b'\\r\\nx\\r\\n') * 40",
  'a chunk size of zeros':
    "b'POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n' + b'0' * 60000",
  'trailers without end':
    "b'POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n' + b'X: y\\r\\n' * 20000",
};

const attacks: Record<string, string> = {
  ...Object.fromEntries(
    Object.entries(heads).map(([name, bytes]) => [`HTTP: ${name}`, `many(3, lambda _: tcp(ALLOWED, 80, ${bytes}))`]),
  ),
  'HTTP: a head octet by octet':
    "s = connected(ALLOWED, 80); s.setsockopt(6, 1, 1); many(6000, lambda n: s.send(b'GET / HTTP/1.1\\r\\nX: '[n:n + 1] or b' '))",
  'HTTP: a hundred heads that never end':
    "kept = many(100, lambda _: connected(ALLOWED, 80, b'GET / HTTP/1.1\\r\\nX: ' + b' ' * 12000))",
  'HTTP: a body that never comes':
    "kept = many(100, lambda _: connected(ALLOWED, 80, b'POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\nContent-Length: 100000\\r\\n\\r\\n'))",
  'HTTP: answers that nobody reads':
    "kept = many(30, lambda _: connected(ALLOWED, 80, b'GET /part HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n'))",
  'TLS: records of one octet':
    "m = message([server_names('allowed.test'), extension(21, bytes(5000))]); many(3, lambda _: tcp(ALLOWED, 443, b''.join(record(bytes([b])) for b in m)))",
  'TLS: records of one octet, octet by octet':
    "m = message([server_names('allowed.test'), extension(21, bytes(200))]); s = connected(ALLOWED, 443); s.setsockopt(6, 1, 1); b = b''.join(record(bytes([b])) for b in m); many(len(b) - 1, lambda n: s.send(b[n:n + 1]))",
  'TLS: empty records': "tcp(ALLOWED, 443, record(b'') * 5000)",
  'TLS: eight thousand extensions':
    "tcp(ALLOWED, 443, b''.join(record(p) for p in (lambda m: [m[i:i + 16000] for i in range(0, len(m), 16000)])(message([extension(n, b'') for n in range(0x100, 0x1e00)]))))",
  'TLS: the same extension without end': "tcp(ALLOWED, 443, hello(*[extension(0x1234, b'') for n in range(3000)]))",
  'TLS: a hundred greetings that never end':
    "kept = many(100, lambda _: connected(ALLOWED, 443, hello(server_names('allowed.test'))[:80]))",
  'TLS: a name of sixty thousand octets':
    "tcp(ALLOWED, 443, b''.join(record(p) for p in (lambda m: [m[i:i + 16000] for i in range(0, len(m), 16000)])(message([server_names('a.' * 14000)]))))",
  'TLS: an alert flood': "tcp(ALLOWED, 443, record(b'\\x01\\x00', kind=21) * 5000)",
  'connections: three thousand':
    'kept = many(3000, lambda _: connected(ALLOWED, 80, wait=0.2))[:1100]; [s.close() for s in kept]',
  'connections: opened and closed': 'many(1500, lambda _: connected(ALLOWED, 80, wait=0.2).close())',
  'connections: opened and reset':
    "def reset(_):\n    s = connected(ALLOWED, 443, wait=0.2); s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close()\nmany(1500, reset)",
  'connections: half closed':
    'kept = many(300, lambda _: (lambda s: (s.shutdown(socket.SHUT_WR), s))(connected(ALLOWED, 80)))',
  'connections: to a server that does not answer':
    "kept = many(200, lambda _: connected(WILD, 80, b'GET / HTTP/1.1\\r\\nHost: silent.wild.test\\r\\n\\r\\n'))",
  'connections: to a server that does not answer, and away':
    "many(300, lambda _: connected(WILD, 80, b'GET / HTTP/1.1\\r\\nHost: silent.wild.test\\r\\n\\r\\n').close())",
  'connections: names that are not there':
    "many(200, lambda n: connected(WILD, 80, f'GET / HTTP/1.1\\r\\nHost: n{n}.nowhere.wild.test\\r\\n\\r\\n'.encode()).close())",
  'DNS: five hundred connections': 'kept = many(500, lambda _: connected(RESOLVER, 53, wait=0.3))',
  'DNS: connections that hold on with a question':
    "q = question('allowed.test'); kept = many(100, lambda _: connected(RESOLVER, 53, struct.pack('>H', len(q)) + q, wait=0.3)); [many(1, lambda _: s.send(struct.pack('>H', len(q)) + q)) for s in kept]",
  'DNS: connections that hold on with half a question':
    "kept = many(100, lambda _: connected(RESOLVER, 53, b'\\x0f\\xff' + bytes(100), wait=0.3))",
  'DNS: a question octet by octet':
    "q = question('allowed.test'); s = connected(RESOLVER, 53); s.setsockopt(6, 1, 1); many(2 + len(q), lambda n: s.send((struct.pack('>H', len(q)) + q)[n:n + 1])); drain(s)",
  'DNS: questions whose answers nobody reads':
    "q = question('long.allowed.test', 16); s = connected(RESOLVER, 53); many(2000, lambda _: s.send(struct.pack('>H', len(q)) + q))",
  'DNS: the longest length': "tcp(RESOLVER, 53, b'\\xff\\xff' + bytes(65535))",
  'DNS: nothing but zeros': 'tcp(RESOLVER, 53, bytes(60000))',
  'DNS: twenty thousand datagrams':
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); q = question('allowed.test'); many(20000, lambda _: s.sendto(q, (RESOLVER, 53))); time.sleep(1.5)",
  'DNS: five thousand names':
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); many(5000, lambda n: s.sendto(question(f'n{n}.wild.test'), (RESOLVER, 53))); time.sleep(1.5)",
  'DNS: datagrams of sixty thousand octets':
    's = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); many(50, lambda _: s.sendto(bytes(60000), (RESOLVER, 53)))',
  'DNS: records without end':
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); many(50, lambda _: s.sendto(struct.pack('>6H', 7, 0x100, 1, 65535, 65535, 65535) + question('allowed.test')[12:] + b'\\0\\0\\1\\0\\1\\0\\0\\0\\0\\0\\0' * 300, (RESOLVER, 53)))",
  'DNS: pointers to pointers':
    "p = b''.join(struct.pack('>H', 0xc000 | (12 + 2 * n)) for n in range(2000)); s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); many(50, lambda _: s.sendto(struct.pack('>6H', 7, 0x100, 1, 0, 0, 2) + b'\\0\\0' + p + b'\\0\\1\\0\\1', (RESOLVER, 53)))",
  'DNS: from many ports':
    "q = question('allowed.test'); many(2000, lambda _: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(q, (RESOLVER, 53)))",
  'DNS: names that are not there':
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); many(500, lambda n: s.sendto(question(f'n{n}.nowhere.wild.test'), (RESOLVER, 53))); time.sleep(0.5)",
  ...Object.fromEntries(
    Object.keys(hostileShapes).map(shape => [
      `a server: ${shape}`,
      `many(2, lambda _: http('${hostileServer}', 'GET /${encodeURIComponent(shape)} HTTP/1.1', 'Host: hostile.wild.test'))`,
    ]),
  ),
};

export const floods: Attempt[] = attempts('names', 'flood', attacks).map(attempt => ({
  ...attempt,
  program: `${attempt.program}`,
  mustServe: true,
}));
