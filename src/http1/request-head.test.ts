import { expect, test } from 'bun:test';
import { incomplete, malformed } from './fields.ts';
import { RequestHead } from './request-head.ts';

const head = new RequestHead(32);

function parse(text: string): number {
  const bytes = Buffer.from(text, 'latin1');
  return head.parse(bytes, 0, bytes.length);
}

function statusOf(text: string): number | 'fine' | 'incomplete' {
  const end = parse(text);
  return end === malformed ? head.fault.status : end === incomplete ? 'incomplete' : 'fine';
}

const withHost = (rest: string) => `GET / HTTP/1.1\r\nHost: x\r\n${rest}\r\n`;

test('reads what a head says', () => {
  const text =
    'POST /a/b?c=%20d HTTP/1.1\r\nHost: example.com\r\nX-Empty:\r\ncontent-LENGTH: \t12 \t\r\nX-Latin: ' +
    'caf\xe9\r\n\r\nbody';
  expect(parse(text)).toBe(text.length - 4);
  expect([head.method, head.target, head.minorVersion]).toEqual(['POST', '/a/b?c=%20d', 1]);
  expect(head.framing).toEqual({ kind: 'length', length: 12 });
  expect(head.fields.count).toBe(4);
  expect(head.fields.text('host')).toBe('example.com');
  expect([0, 1, 2, 3].map(i => [head.fields.nameAt(i), head.fields.textAt(i)])).toEqual([
    ['host', 'example.com'],
    ['x-empty', ''],
    ['content-length', '12'],
    ['x-latin', 'caf\xe9'],
  ]);
  expect(head.methodIs('POST')).toBe(true);
  expect(head.methodIs('POS')).toBe(false);
});

test('every prefix of a head is incomplete', () => {
  const text = 'POST /a HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n';
  for (let end = 0; end < text.length; end++) expect(parse(text.slice(0, end))).toBe(incomplete);
  expect(parse(text)).toBe(text.length);
});

test('what lies behind the given bytes, and before them, is none of the head', () => {
  const text = '\r\n\r\nPOST /a HTTP/1.1\r\nHost: example.com\r\n\r\n';
  const bytes = Buffer.from(`GET /b${text}GET /c HTTP/1.1`);
  const start = 'GET /b'.length;
  for (let end = start; end < start + text.length; end++) expect(head.parse(bytes, start, end)).toBe(incomplete);
  expect(head.parse(bytes, start, bytes.length)).toBe(start + text.length);
  expect([head.method, head.methodIs('POST'), head.methodIs('POS'), head.methodIs('GET /bPOST')]).toEqual([
    ...['POST', true, false, false],
  ]);
});

test('a head that is kept stays as it is when the next one is read', () => {
  parse('POST /a HTTP/1.1\r\nHost: x\r\nAccept: b\r\n\r\n');
  const kept = head.keep();
  parse('GET /other HTTP/1.1\r\nHost: y\r\n\r\n');
  expect([kept.method, kept.target, kept.fields.text('host'), kept.fields.text('accept')]).toEqual([
    ...['POST', '/a', 'x', 'b'],
  ]);
});

test('a target with an authority is an absolute one', () => {
  const isAbsolute = (target: string) => {
    parse(`OPTIONS ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return head.targetIsAbsolute;
  };
  expect(['/a', '*', 'http://x', 'HTTPS://x/a'].map(isAbsolute)).toEqual([false, false, true, true]);
});

test('knows the headers that it looks at, in any case, and takes no other for one', () => {
  parse(withHost('X-ACCESS-TOKEN: a\r\nx-access-tokem: b\r\nAccept: c\r\nAccepts: d\r\n'));
  expect(head.fields.text('x-access-token')).toBe('a');
  expect(head.fields.text('accept')).toBe('c');
  expect(head.fields.times('accept')).toBe(1);
  expect(head.fields.has('expect')).toBe(false);
  parse(withHost('Accept: a\r\nAccept: b\r\n'));
  expect(head.fields.list('accept')).toBe('a, b');
  expect(head.fields.text('accept')).toBe('a');
});

test('accepts what is well-formed', () => {
  const fine = [
    withHost(''),
    `\r\n\r\n${withHost('')}`,
    'GET http://example.com/a HTTP/1.1\r\nHost: x\r\n\r\n',
    'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET / HTTP/1.0\r\n\r\n',
    'GET /caf\xc3\xa9 HTTP/1.1\r\nHost:\r\n\r\n',
    withHost('Transfer-Encoding: chunked\r\n'),
    withHost('Transfer-Encoding: Chunked\r\n'),
    withHost('Content-Length: 9007199254740991\r\n'),
    withHost('Content-Length: 0\r\n'),
  ];
  for (const text of fine) expect([text, statusOf(text)]).toEqual([text, 'fine']);
});

test('refuses what is malformed or could be read in two ways', () => {
  const refused: [string, number][] = [
    ['\rGET / HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['GET / HTTP/1.1\rXHost: x\r\n\r\n', 400],
    ['GET / HTTP/1.1X\nHost: x\r\n\r\n', 400],
    ['GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['GET http://?a HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['GET http://#a HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['GET http:// HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['GET ftp://x HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['GET / HTTP/1.1\nHost: x\n\n', 400],
    ['GET / HTTP/1.1\r\nHost: x\n\r\n', 400],
    ['GET / HTTP/1.1\r\nHost: x\r\n\n', 400],
    ['GET  / HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['GET / / HTTP/1.1\r\nHost: x\r\n\r\n', 505],
    ['GET /\r\nHost: x\r\n\r\n', 400],
    [' GET / HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['G\x00T / HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['GET / HTTP/2.0\r\nHost: x\r\n\r\n', 505],
    ['GET / HTTP/1.2\r\nHost: x\r\n\r\n', 505],
    ['GET / http/1.1\r\nHost: x\r\n\r\n', 505],
    ['GET / HTTP/1.1 \r\nHost: x\r\n\r\n', 400],
    ['GET nowhere HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['GET *x HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n', 405],
    ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505],
    ['GET / HTTP/1.1\r\n\r\n', 400],
    [withHost('\rX\r\n'), 400],
    [withHost('Host: y\r\n'), 400],
    [withHost('X-A : b\r\n'), 400],
    [withHost(' folded: b\r\n'), 400],
    [withHost('X-A: b\r\n folded\r\n'), 400],
    [withHost(': b\r\n'), 400],
    [withHost('X-A\r\n'), 400],
    [withHost('X A: b\r\n'), 400],
    [withHost('X-A: b\x00c\r\n'), 400],
    [withHost('X-A: b\rc\r\n'), 400],
    [withHost('X-A: b\x7fc\r\n'), 400],
    [withHost('X-\xe9: b\r\n'), 400],
    [withHost('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n'), 400],
    [withHost('Transfer-Encoding: chunked\r\nContent-Length: 0\r\n'), 400],
    [withHost('Content-Length: 5\r\nContent-Length: 6\r\n'), 400],
    [withHost('Content-Length: 5\r\nContent-Length: 5\r\n'), 400],
    [withHost('Content-Length: 5, 5\r\n'), 400],
    [withHost('Content-Length: +5\r\n'), 400],
    [withHost('Content-Length: -5\r\n'), 400],
    [withHost('Content-Length: 0x5\r\n'), 400],
    [withHost('Content-Length: 5 5\r\n'), 400],
    [withHost('Content-Length:\r\n'), 400],
    [withHost('Content-Length: 9007199254740992\r\n'), 400],
    [withHost('Content-Length: 99999999999999999999\r\n'), 400],
    [withHost('Transfer-Encoding: gzip, chunked\r\n'), 501],
    [withHost('Transfer-Encoding: chunked, chunked\r\n'), 501],
    [withHost('Transfer-Encoding: xchunked\r\n'), 501],
    [withHost('Transfer-Encoding: identity\r\n'), 501],
    [withHost('Transfer-Encoding:\x0bchunked\r\n'), 400],
    [withHost('Transfer-Encoding:\r\n'), 501],
    [withHost('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n'), 400],
    ['POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n', 400],
    [withHost('X: y\r\n'.repeat(32)), 431],
  ];
  for (const [text, status] of refused) expect([text, statusOf(text)]).toEqual([text, status]);
});
