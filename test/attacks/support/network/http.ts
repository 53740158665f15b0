import { attempts } from './attempt.ts';

/** The request that must not arrive: it would leave an entry in the server's log. */
const second = "'GET /smuggled HTTP/1.1', 'Host: other.test'";

/** Past the names, by HTTP. */
export const http = attempts('names', 'HTTP', {
  'Host of another site': "get(OTHER, 'other.test')",
  'Host of another site, at an allowed address': "get(ALLOWED, 'other.test')",
  'Host of an allowed site, at another address': "get(ATTACKER, 'other.test'); get(ATTACKER, 'attacker.test')",
  'no Host': "http(ALLOWED, 'GET / HTTP/1.1')",
  'no Host, HTTP/1.0': "http(OTHER, 'GET / HTTP/1.0')",
  'HTTP/0.9': "tcp(OTHER, 80, b'GET /\\r\\n')",
  'two Hosts, the allowed one first': "http(OTHER, 'GET / HTTP/1.1', 'Host: allowed.test', 'Host: other.test')",
  'two Hosts, the allowed one last': "http(ALLOWED, 'GET / HTTP/1.1', 'Host: other.test', 'Host: allowed.test')",
  'two Hosts in one': "http(ALLOWED, 'GET / HTTP/1.1', 'Host: allowed.test, other.test')",
  'an absolute target of another site': "http(ALLOWED, 'GET http://other.test/ HTTP/1.1', 'Host: allowed.test')",
  'an absolute target, Host of another site': "http(ALLOWED, 'GET http://allowed.test/ HTTP/1.1', 'Host: other.test')",
  'an absolute target with a user':
    "http(ALLOWED, 'GET http://allowed.test@other.test/ HTTP/1.1', 'Host: allowed.test@other.test')",
  'an absolute target of another scheme': "http(ALLOWED, 'GET https://other.test/ HTTP/1.1', 'Host: allowed.test')",
  'a target without a path': "http(ALLOWED, 'GET other.test HTTP/1.1', 'Host: allowed.test')",
  'a target of two slashes': "http(OTHER, 'GET //other.test/ HTTP/1.1', 'Host: other.test')",
  'CONNECT to another site': "http(ALLOWED, 'CONNECT other.test:443 HTTP/1.1', 'Host: other.test:443')",
  'CONNECT under an allowed name': "http(ALLOWED, 'CONNECT allowed.test:443 HTTP/1.1', 'Host: allowed.test')",
  'CONNECT with the name of an allowed Host': "http(ALLOWED, 'CONNECT other.test:443 HTTP/1.1', 'Host: allowed.test')",
  'a second request in the same segment': `http(ALLOWED, 'GET / HTTP/1.1', 'Host: allowed.test', '', ${second})`,
  'a second request later':
    "s = socket.create_connection((ALLOWED, 80), WAIT); s.settimeout(WAIT); s.sendall(b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n'); s.recv(1000); s.sendall(b'GET /smuggled HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n'); drain(s)",
  'a second request after a tenth':
    "s = socket.create_connection((ALLOWED, 80), WAIT); s.settimeout(WAIT)\nfor i in range(10): s.sendall(b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n'); s.recv(1000)\ns.sendall(b'GET /smuggled HTTP/1.1\\r\\nHost: attacker.test\\r\\n\\r\\n'); drain(s)",
  'a request inside of a body that two lengths disagree about': `http(ALLOWED, 'POST / HTTP/1.1', 'Host: allowed.test', 'Content-Length: 4', 'Transfer-Encoding: chunked', '', '0', '', ${second})`,
  'two lengths': `http(ALLOWED, 'POST / HTTP/1.1', 'Host: allowed.test', 'Content-Length: 0', 'Content-Length: 60', '', ${second})`,
  'a list of lengths': `http(ALLOWED, 'POST / HTTP/1.1', 'Host: allowed.test', 'Content-Length: 0, 60', '', ${second})`,
  'a length with a sign': `http(ALLOWED, 'POST / HTTP/1.1', 'Host: allowed.test', 'Content-Length: +60', '', ${second})`,
  'a length in another base': `http(ALLOWED, 'POST / HTTP/1.1', 'Host: allowed.test', 'Content-Length: 0x3c', '', ${second})`,
  'a transfer coding that is almost chunked': `http(ALLOWED, 'POST / HTTP/1.1', 'Host: allowed.test', 'Transfer-Encoding: xchunked', '', ${second})`,
  'two transfer codings': `http(ALLOWED, 'POST / HTTP/1.1', 'Host: allowed.test', 'Transfer-Encoding: chunked', 'Transfer-Encoding: identity', '', '0', '', ${second})`,
  'a transfer coding after a space': `http(ALLOWED, 'POST / HTTP/1.1', 'Host: allowed.test', 'Transfer-Encoding : chunked', '', '0', '', ${second})`,
  'chunked by HTTP/1.0': `http(ALLOWED, 'POST / HTTP/1.0', 'Host: allowed.test', 'Transfer-Encoding: chunked', '', '0', '', ${second})`,
  'a chunk whose size ends with LF': `http(ALLOWED, 'POST / HTTP/1.1', 'Host: allowed.test', 'Transfer-Encoding: chunked', '', '5;x=\\n0', '', ${second})`,
  'a chunk of negative size': `http(ALLOWED, 'POST / HTTP/1.1', 'Host: allowed.test', 'Transfer-Encoding: chunked', '', '-1', '', ${second})`,
  'a chunk of a size that overflows': `http(ALLOWED, 'POST / HTTP/1.1', 'Host: allowed.test', 'Transfer-Encoding: chunked', '', '10000000000000000', '', ${second})`,
  'a Host among the trailers':
    "http(ALLOWED, 'POST / HTTP/1.1', 'Transfer-Encoding: chunked', 'Trailer: Host', '', '0', 'Host: other.test')",
  'a folded Host': "http(ALLOWED, 'GET / HTTP/1.1', 'Host: allowed.test', ' other.test')",
  'a folded first line': "http(ALLOWED, 'GET / HTTP/1.1', ' Host: other.test', 'Host: allowed.test')",
  'a space before the colon': "http(ALLOWED, 'GET / HTTP/1.1', 'Host : other.test')",
  'a line that ends with LF': "tcp(ALLOWED, 80, b'GET / HTTP/1.1\\nHost: other.test\\n\\n')",
  'a line that ends with LF among others':
    "tcp(ALLOWED, 80, b'GET / HTTP/1.1\\r\\nX: y\\nHost: other.test\\r\\nHost: allowed.test\\r\\n\\r\\n')",
  'a line that ends with CR':
    "tcp(ALLOWED, 80, b'GET / HTTP/1.1\\r\\nX: y\\rHost: other.test\\r\\nHost: allowed.test\\r\\n\\r\\n')",
  'a NUL in the Host': "tcp(ALLOWED, 80, b'GET / HTTP/1.1\\r\\nHost: other.test\\0.wild.test\\r\\n\\r\\n')",
  'a NUL before the Host': "tcp(ALLOWED, 80, b'GET / HTTP/1.1\\r\\nX: \\0\\r\\nHost: other.test\\r\\n\\r\\n')",
  'a Host with a user': "get(ALLOWED, 'allowed.test@other.test'); get(ALLOWED, 'other.test@allowed.test')",
  'a Host with a fragment': "get(ALLOWED, 'other.test#.wild.test')",
  'a Host with a path': "get(ALLOWED, 'other.test/.wild.test')",
  'a Host with a question': "get(ALLOWED, 'other.test?.wild.test')",
  'a Host with a backslash': "get(ALLOWED, 'other.test\\\\.wild.test')",
  'a Host with a port that is a host': "get(ALLOWED, 'allowed.test:other.test')",
  'a Host with two ports': "get(ALLOWED, 'allowed.test:80:80')",
  'a Host with another port': "get(ALLOWED, 'allowed.test:7000')",
  'a percent sign in the Host': "get(ALLOWED, 'other%2etest'); get(ALLOWED, 'x%00.wild.test')",
  'a name that begins like an allowed one': "get(ATTACKER, 'allowed.test.attacker.test')",
  'a name that ends like an allowed one': "get(ATTACKER, 'notallowed.test'); get(ATTACKER, 'xwild.test')",
  'the name above a pattern': "get(WILD, 'wild.test')",
  'a pattern itself': "get(WILD, '*.wild.test')",
  'a name below an exact one': "get(ALLOWED, 'www.allowed.test')",
  'two final dots': "get(ALLOWED, 'allowed.test..')",
  'an empty label': "get(ALLOWED, 'other..wild.test')",
  'an address': "get(OTHER, OTHER); get(OTHER, '1.1.1.1')",
  'an address as one number': "get(OTHER, '3405803787')",
  'an address in hexadecimal': "get(OTHER, '0xcb.0x0.0x71.0xb'); get(OTHER, '0xcb00710b')",
  'an address in octal': "get(OTHER, '0313.0.0161.013')",
  'an address with fewer parts': "get(OTHER, '203.28939')",
  'an IPv6 address': "get(OTHER, '[::ffff:203.0.113.11]'); get(OTHER, '[2001:db8::1]')",
  'a name in Unicode':
    "tcp(ALLOWED, 80, 'GET / HTTP/1.1\\r\\nHost: allowed\\u3002test\\r\\n\\r\\n'.encode()); tcp(ALLOWED, 80, 'GET / HTTP/1.1\\r\\nHost: \\u0430llowed.test\\r\\n\\r\\n'.encode())",
  'a long name': "get(ALLOWED, 'a' * 70000 + '.wild.test')",
  'many fields': "http(ALLOWED, 'GET / HTTP/1.1', *[f'X-{n}: y' for n in range(5000)], 'Host: other.test')",
  'an empty Host': "get(ALLOWED, '')",
  'HTTP/2 without TLS':
    "tcp(ALLOWED, 80, b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + b'\\0\\0\\0\\x04\\0\\0\\0\\0\\0' + b'\\0\\0\\x10\\x01\\x05\\0\\0\\0\\x01\\x82\\x86\\x84\\x41\\x0aother.test')",
  'an upgrade to HTTP/2':
    "s = socket.create_connection((ALLOWED, 80), WAIT); s.settimeout(WAIT); s.sendall(b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: Upgrade, HTTP2-Settings\\r\\nUpgrade: h2c\\r\\nHTTP2-Settings: AAMAAABkAAQAAP__\\r\\n\\r\\n'); s.recv(1000); s.sendall(b'GET /smuggled HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n'); drain(s)",
  'an upgrade to TLS':
    "s = socket.create_connection((ALLOWED, 80), WAIT); s.settimeout(WAIT); s.sendall(b'OPTIONS * HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: Upgrade\\r\\nUpgrade: TLS/1.0\\r\\n\\r\\n'); s.recv(1000); s.sendall(b'GET /smuggled HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n'); drain(s)",
  'a WebSocket that the server refuses':
    "s = socket.create_connection((ALLOWED, 80), WAIT); s.settimeout(WAIT); s.sendall(b'GET /no HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n\\r\\n'); s.recv(1000); s.sendall(b'GET /smuggled HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n'); drain(s)",
  'octet by octet':
    "tcp(OTHER, 80, pieces=[bytes([b]) for b in b'GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n'], pause=0.005)",
  'an allowed Host, changed before the end of the head':
    "tcp(OTHER, 80, pieces=[b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n', b'X: y\\r\\n', b'Host: other.test\\r\\n\\r\\n'], pause=0.1)",
  'a head that never ends':
    "tcp(OTHER, 80, pieces=[b'GET / HTTP/1.1\\r\\nHost: other.test\\r\\n'] + [b'X: y\\r\\n'] * 10, pause=0.05)",
  'a first line with a tab': "http(ALLOWED, 'GET\\thttp://other.test/\\tHTTP/1.1', 'Host: allowed.test')",
  'a first line with two versions': "http(ALLOWED, 'GET / HTTP/1.1 HTTP/1.1', 'Host: other.test')",
  'blank lines first': "tcp(OTHER, 80, b'\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n')",
  'headers about the host':
    "http(OTHER, 'GET / HTTP/1.1', 'Host: other.test', 'X-Forwarded-Host: allowed.test', 'Forwarded: host=allowed.test')",
  'SSH on port 80': "tcp(OTHER, 80, b'SSH-2.0-OpenSSH_9.2\\r\\n')",
  'SOCKS on port 80': "tcp(ATTACKER, 80, b'\\x05\\x01\\x00')",
  'TLS on port 80': "tcp(OTHER, 80, hello(server_names('allowed.test')))",
  'nothing, and then something, on port 80':
    "tcp(OTHER, 80, pieces=[b'', b'GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n'], pause=1.3)",
});
