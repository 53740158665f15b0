import { expect, test } from 'bun:test';
import { requestBytes } from './request-bytes.ts';

const base = { ':method': 'GET', ':path': '/a?b', ':authority': 'x.example', ':scheme': 'https' };

test('a request is written as HTTP/1.1', () => {
  const request = requestBytes({ ...base, accept: '*/*', cookie: 'a=b; c=d', 'content-length': '3' }, false);
  expect(request?.head.toString()).toBe(
    'GET /a?b HTTP/1.1\r\nHost: x.example\r\naccept: */*\r\ncookie: a=b; c=d\r\ncontent-length: 3\r\n\r\n',
  );
  expect(request?.body).toEqual({ kind: 'length', length: 3 });
});

test('a body without a length comes in chunks, and none is none', () => {
  expect(requestBytes({ ...base, ':method': 'POST' }, false)?.head.toString()).toContain(
    'Transfer-Encoding: chunked\r\n',
  );
  expect(requestBytes(base, true)?.body).toEqual({ kind: 'none' });
});

test('fields of a connection do not pass', () => {
  const head = requestBytes(
    { ...base, connection: 'x', 'transfer-encoding': 'chunked', upgrade: 'h2c', te: 'trailers', host: 'evil' },
    true,
  )?.head.toString();
  expect(head).toBe('GET /a?b HTTP/1.1\r\nHost: x.example\r\n\r\n');
});

test('nothing can add a line, a request or a second host', () => {
  for (const headers of [
    { ...base, ':path': '/ HTTP/1.1\r\nX: y' },
    { ...base, ':path': '/a b' },
    { ...base, ':path': 'http://other/' },
    { ...base, ':path': '' },
    { ...base, ':method': 'GET / HTTP/1.1\r\n\r\nGET' },
    { ...base, ':method': 'CONNECT' },
    { ...base, ':authority': 'a\r\nX: y' },
    { ...base, ':authority': 'a b' },
    { ...base, ':authority': '' },
    { ...base, 'x-a': 'b\r\nTransfer-Encoding: chunked' },
    { ...base, 'x-a': 'b\0' },
    { ...base, 'x-a\r\nx-b': 'c' },
    { ...base, 'x a': 'b' },
    { ...base, 'X-A': 'b' },
    { ...base, 'content-length': '5, 5' },
    { ...base, 'content-length': '-5' },
    { ...base, 'content-length': '5' },
    { ':method': 'GET', ':authority': 'x' },
  ]) {
    expect([headers, requestBytes(headers, true)]).toEqual([headers, undefined]);
  }
});

test('a WebSocket is begun as HTTP/1.1 begins one, with a key of its own', () => {
  const asked = { ...base, ':method': 'CONNECT', ':protocol': 'websocket', 'sec-websocket-version': '13' };
  const made = requestBytes(asked, false);
  const lines = made?.head.toString().split('\r\n') ?? [];
  expect(lines).toEqual([
    'GET /a?b HTTP/1.1',
    'Host: x.example',
    'sec-websocket-version: 13',
    'Connection: Upgrade',
    'Upgrade: websocket',
    expect.stringMatching(/^Sec-WebSocket-Key: [A-Za-z0-9+/]{22}==$/),
    '',
    '',
  ]);
  expect(made?.body).toEqual({ kind: 'tunnel' });
  expect(requestBytes(asked, true)).toBeUndefined();
  for (const change of [
    { ':protocol': 'connect-udp' },
    { ':method': 'GET' },
    { 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' },
    { 'content-length': '0' },
  ])
    expect(requestBytes({ ...asked, ...change }, false)).toBeUndefined();
});

test('a call of gRPC is told by its content and by what it takes', () => {
  const isGrpc = (headers: Record<string, string>) => requestBytes({ ...base, ...headers }, false)?.isGrpc;
  const call = { ':method': 'POST', te: 'trailers', 'content-type': 'application/grpc' };
  for (const type of ['application/grpc', 'application/grpc+proto', 'application/grpc;x=y'])
    expect(isGrpc({ ...call, 'content-type': type })).toBe(true);
  for (const other of [
    { ...call, 'content-type': 'application/grpc-web' },
    { ...call, 'content-type': 'text/plain' },
    { ...call, te: 'gzip' },
    { ...call, ':method': 'GET' },
  ])
    expect(isGrpc(other)).toBe(false);
});
