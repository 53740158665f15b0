import { expect, test } from 'bun:test';
import { ResponseHead } from '../http1/response-head.ts';
import { http2Headers, http2Trailers } from './http2/response-headers.ts';
import { fieldsOf, trailersOf } from './http2-fields.ts';

const field = (name: string, value: string) => ({ name, value });

test('headers of HTTP/2 are fields in their order, a line for each value', () => {
  expect(fieldsOf({ ':path': '/', accept: 'a', 'set-cookie': ['b', 'c'], 'x-none': undefined, 'x-empty': '' })).toEqual(
    [...[field('accept', 'a'), field('set-cookie', 'b'), field('set-cookie', 'c'), field('x-empty', '')]],
  );
});

test('the crumbs of a cookie are one cookie', () => {
  expect(fieldsOf({ cookie: ['a=1', 'b=2'] as unknown as string })).toEqual([field('cookie', 'a=1; b=2')]);
  expect(fieldsOf({ cookie: 'a=1' })).toEqual([field('cookie', 'a=1')]);
});

const ofConnection = [
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'http2-settings', 'te', 'host'],
];
test.each(ofConnection)('%s means nothing in HTTP/2, and gets no meaning on the way', name => {
  expect(fieldsOf({ [name]: 'chunked', 'x-a': '1' })).toEqual([field('x-a', '1')]);
});

test.each(['a\r\nHost: b', 'a\nb', 'a\rb', 'a\0b', 'a\x7fb', 'a\u0100b'])('%j can not be a value', text => {
  expect(fieldsOf({ 'x-a': text })).toBeUndefined();
  expect(fieldsOf({ 'x-a': ['fine', text] })).toBeUndefined();
  expect(trailersOf({ 'x-a': text })).toBeUndefined();
});

test.each(['x a', 'x:a', 'X-A', 'x\r\na', ''])('%j can not be a name', name => {
  expect(fieldsOf({ [name]: 'a' })).toBeUndefined();
});

test('values may hold tabs and bytes beyond ASCII', () => {
  expect(fieldsOf({ 'x-a': 'a\tb \xe9\xff' })).toEqual([field('x-a', 'a\tb \xe9\xff')]);
});

const notBehindBody = [
  ...['content-length', 'content-type', 'content-encoding', 'content-range', 'expect', 'trailer', 'authorization'],
  ...['cookie', 'set-cookie', 'clear-site-data', 'strict-transport-security', 'alt-svc', 'x-access-token', 'forwarded'],
  ...['x-atoll-a', 'x-forwarded-for', 'e2b-sandbox-id', 'svc-sandbox-id'],
];
test.each(notBehindBody)('%s comes too late behind a body, in either direction', name => {
  expect(trailersOf({ [name]: '1', 'grpc-status': '0' })).toEqual([field('grpc-status', '0')]);
  expect({ ...http2Trailers([field(name.toUpperCase(), '1'), field('GRPC-Status', '0')]) }).toEqual({
    'grpc-status': '0',
  });
});

test('what names the request again behind its body is no field of it', () => {
  expect(trailersOf({ ':path': '/other', 'x-a': '1' })).toBeUndefined();
});

/** The HTTP/2 headers for an HTTP/1.1 response. */
function answered(...lines: string[]) {
  const head = new ResponseHead(32);
  const bytes = Buffer.from([...lines, '', ''].join('\r\n'), 'latin1');
  expect(head.parse(bytes, 0, bytes.length)).toBe(bytes.length);
  return http2Headers(head);
}

test('a response has its status and its fields, those of a name as one list, except cookies', () => {
  expect({
    ...answered('HTTP/1.1 404 Not Found', 'X-A: 1', 'x-a: 2', 'Set-Cookie: a', 'Set-Cookie: b', 'Vary: x'),
  }).toEqual({ ...{ ':status': 404, 'x-a': '1, 2', 'set-cookie': ['a', 'b'], vary: 'x' } });
  expect({ ...http2Trailers([field('X-A', '1'), field('X-A', '2'), field('X-A', '3')]) }).toEqual({ 'x-a': '1, 2, 3' });
});

test('fields of the connection have no place in HTTP/2, and a switch of protocols is a plain success', () => {
  const lines = ['connection: upgrade', 'Keep-Alive: 1', 'Proxy-Connection: a', 'Transfer-Encoding: chunked'];
  const headers = answered(
    'HTTP/1.1 101 Switching Protocols',
    ...lines,
    'Upgrade: a',
    'Sec-WebSocket-Accept: b',
    'C: d',
  );
  expect({ ...headers }).toEqual({ ':status': 200, c: 'd' });
});

test('a field may have the name of what objects inherit', () => {
  expect(answered('HTTP/1.1 200 OK', 'constructor: a', '__proto__: b')).toMatchObject({ constructor: 'a' });
  expect(Object.entries(answered('HTTP/1.1 200 OK', '__proto__: b'))).toContainEqual(['__proto__', 'b']);
});
