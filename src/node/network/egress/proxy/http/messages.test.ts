import { expect, test } from 'bun:test';
import { headBytesMax } from './limits.ts';
import { composeRequest, type RelayedRequest, readRequest } from './request.ts';
import { readResponse } from './response.ts';

const head = (...lines: string[]) => Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
const request = (...lines: string[]) => readRequest(head(...lines));
const good = (...lines: string[]): RelayedRequest => {
  const read = request(...lines);
  if (read === 'incomplete' || 'refused' in read) throw new Error(JSON.stringify(read));
  return read;
};

/** Processor time of this process, milliseconds. Unlike the time of day, it does not grow while others compute. */
const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

test('a head is read when it is whole, and its octets are kept', () => {
  const bytes = Buffer.from('GET /\xe9 HTTP/1.1\r\nHost: a.test\r\nX:\t y \r\n\r\nrest', 'latin1');
  for (let length = 0; length < bytes.length - 4; length++)
    expect(readRequest(bytes.subarray(0, length))).toBe('incomplete');
  expect(readRequest(bytes)).toMatchObject({
    method: 'GET',
    target: '/\xe9',
    fields: [
      { name: 'Host', value: 'a.test' },
      { name: 'X', value: 'y' },
    ],
    length: bytes.length - 4,
  });
});

test('a refused request says which host it was meant for', () => {
  expect(request('CONNECT a.test:443 HTTP/1.1', 'Host: A.test:443')).toMatchObject({ host: 'a.test' });
  expect(readRequest(Buffer.from('nonsense\n\n'))).toMatchObject({ host: undefined });
});

test('requests that a server may read in another way are refused', () => {
  const refused = [
    ['GET / HTTP/1.1', 'Host: a.test', 'Host: b.test'],
    ['GET http://b.test/ HTTP/1.1', 'Host: a.test'],
    ['GET https://a.test/ HTTP/1.1', 'Host: a.test'],
    ['CONNECT a.test:443 HTTP/1.1', 'Host: a.test'],
    ['PRI * HTTP/2.0'],
    ['GET / HTTP/3'],
    ['GET  / HTTP/1.1', 'Host: a.test'],
    ['GET / HTTP/1.1', 'Host: a.test', ' folded'],
    ['GET / HTTP/1.1', 'Host : a.test'],
    ['GET / HTTP/1.1', 'Ho\0st: a.test'],
    ['GET / HTTP/1.1', 'X: a\nHost: b.test', 'Host: a.test'],
    ['POST / HTTP/1.1', 'Host: a.test', 'Content-Length: 1', 'Content-Length: 2'],
    ['POST / HTTP/1.1', 'Host: a.test', 'Content-Length: 1', 'Transfer-Encoding: chunked'],
    ['POST / HTTP/1.1', 'Host: a.test', 'Content-Length: +1'],
    ['POST / HTTP/1.1', 'Host: a.test', 'Transfer-Encoding: gzip, chunked'],
    ['POST / HTTP/1.0', 'Host: a.test', 'Transfer-Encoding: chunked'],
  ];
  for (const lines of refused) expect(request(...lines)).toHaveProperty('refused');
});

test('the host and the target of a request are read', () => {
  expect(good('GET /x HTTP/1.1', 'Host: A.test:8080')).toMatchObject({
    host: 'a.test',
    port: 8080,
    target: '/x',
    body: { kind: 'none' },
  });
  expect(good('GET http://a.test/x?y HTTP/1.1', 'Host: a.test')).toMatchObject({ host: 'a.test', target: '/x?y' });
  expect(good('GET http://a.test HTTP/1.1', 'Host: a.test')).toMatchObject({ target: '/' });
  expect(good('OPTIONS * HTTP/1.1', 'Host: a.test')).toMatchObject({ target: '*' });
  expect(good('GET / HTTP/1.0')).toMatchObject({ host: undefined });
  for (const host of [
    '203.0.113.11',
    '[::1]',
    '3405803787',
    'a.test@b.test',
    'a.test#',
    'a.test:x',
    'a test',
    '',
    'a..b',
  ]) {
    expect(good('GET / HTTP/1.1', `Host: ${host}`)).toMatchObject({ host: undefined });
  }
  expect(good('GET / HTTP/1.1', 'Host: a.test', 'Connection: keep-alive, Upgrade', 'Upgrade: websocket').upgrade).toBe(
    true,
  );
  expect(good('GET / HTTP/1.1', 'Host: a.test', 'Connection: Upgrade', 'Upgrade: h2c').upgrade).toBe(false);
  expect(good('GET / HTTP/1.1', 'Host: a.test', 'Upgrade: websocket').upgrade).toBe(false);
});

test("a request goes to the host that was decided about, with the rule's headers in place of its own", () => {
  const read = good(
    'GET http://a.test/x HTTP/1.1',
    'host: a.test',
    'authorization: mine',
    'Cookie: kept',
    'Connection: close, Authorization, h2c',
    'Proxy-Connection: close',
    'HTTP2-Settings: x',
    'Upgrade: h2c',
  );
  expect(composeRequest(read, 'a.test', { Authorization: "the rule's" }).toString()).toBe(
    [
      'GET /x HTTP/1.1',
      'Host: a.test',
      'Cookie: kept',
      'Connection: close, h2c',
      "Authorization: the rule's",
      '',
      '',
    ].join('\r\n'),
  );
});

test("headers that frame a message are no rule's to set", () => {
  const read = good('POST /x HTTP/1.1', 'Host: a.test', 'Content-Length: 5');
  expect(
    composeRequest(read, 'a.test', {
      'Content-Length': '0',
      'transfer-encoding': 'chunked',
      Connection: 'close',
      X: 'y',
    }).toString(),
  ).toBe(['POST /x HTTP/1.1', 'Host: a.test', 'Content-Length: 5', 'X: y', '', ''].join('\r\n'));
});

test('what a sandbox says about its origin does not reach the platform, neither directly nor by a rule', () => {
  const read = good(
    'GET / HTTP/1.1',
    'Host: a.test',
    'X-Forwarded-For: 1.2.3.4',
    'forwarded: for=1.2.3.4',
    'X-Real-Ip: 1.2.3.4',
    'X-Forwarded: kept',
  );
  const rules = { 'x-forwarded-host': 'b.test', X: 'y' };
  expect(composeRequest(read, 'a.test', rules, { toPlatform: true }).toString()).toBe(
    ['GET / HTTP/1.1', 'Host: a.test', 'X-Forwarded: kept', 'X: y', '', ''].join('\r\n'),
  );
  expect(composeRequest(read, 'a.test', rules).toString()).toContain('X-Forwarded-For: 1.2.3.4');
});

test('no rule turns a request to the platform to another host than the one that was decided about', () => {
  const read = good('GET /sandboxes HTTP/1.1', 'Host: 80-a.test');
  const rules = { hOst: 'api.test', X: 'y' };
  expect(composeRequest(read, '80-a.test', rules, { toPlatform: true }).toString()).toBe(
    ['GET /sandboxes HTTP/1.1', 'Host: 80-a.test', 'X: y', '', ''].join('\r\n'),
  );
  expect(composeRequest(read, '80-a.test', rules).toString()).toContain('hOst: api.test');
});

test('where a response ends depends on its request and its status', () => {
  const response = (method: string, ...lines: string[]) => {
    const read = readResponse(head(...lines), method);
    return typeof read === 'string' ? read : read.body.kind;
  };
  expect(response('GET', 'HTTP/1.1 200 OK', 'Content-Length: 5')).toBe('length');
  expect(response('HEAD', 'HTTP/1.1 200 OK', 'Content-Length: 5')).toBe('none');
  expect(response('GET', 'HTTP/1.1 304 Not Modified', 'Content-Length: 5')).toBe('none');
  expect(response('GET', 'HTTP/1.1 204')).toBe('none');
  expect(response('GET', 'HTTP/1.1 200 OK', 'Transfer-Encoding: chunked')).toBe('chunked');
  expect(response('GET', 'HTTP/1.1 200 OK')).toBe('close');
  expect(response('GET', 'HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket')).toBe('none');
  expect(response('GET', 'ICY 200 OK')).toBe('invalid');
});

test('a response whose end could be read in two ways is invalid', () => {
  for (const lines of [
    ['Content-Length: 5', 'Content-Length: 6'],
    ['Content-Length: 5', 'Transfer-Encoding: chunked'],
    ['Transfer-Encoding: chunked, gzip'],
    ['Content-Length: +5'],
  ])
    expect(readResponse(head('HTTP/1.1 200 OK', ...lines), 'GET')).toBe('invalid');
});

test('a head is gone through once, whatever it is made of', () => {
  const filler = headBytesMax - 100;
  const shapes = [
    `X: a${' '.repeat(filler)}b`,
    `X: ${'\t '.repeat(filler / 2)}`,
    `X: ${', '.repeat(filler / 2)}`,
    `X:${' '.repeat(filler)}`,
    `${'X'.repeat(filler)}: y`,
    `Connection: ${'upgrade,'.repeat(filler / 8)}`,
    `Transfer-Encoding: ${' ,'.repeat(filler / 2)}`,
  ];
  for (const shape of shapes) {
    const startedMs = cpuMs();
    for (let i = 0; i < 20; i++) {
      readRequest(Buffer.from(`GET / HTTP/1.1\r\nHost: a.test\r\n${shape}\r\n\r\n`));
    }
    // Linear reads take less than a millisecond; quadratic ones took 500 ms each.
    expect(cpuMs() - startedMs).toBeLessThan(4_000);
  }
});

test('a head that comes octet by octet is found where it ends, and one without an end is given up', () => {
  const whole = Buffer.from('GET / HTTP/1.1\r\nHost: a.test\r\n\r\n');
  for (let length = 1; length < whole.length; length++)
    expect(readRequest(whole.subarray(0, length), length - 1)).toBe('incomplete');
  expect(readRequest(whole, whole.length - 1)).toMatchObject({ length: whole.length });
  expect(readRequest(Buffer.from('A: b\n\n'), 5)).toHaveProperty('refused');
  expect(readRequest(Buffer.alloc(headBytesMax + 1, 'a'), headBytesMax)).toHaveProperty('refused');
});

test('a head may have 16 KiB, and no more', () => {
  const sized = (bytes: number) => {
    const around = head('GET / HTTP/1.1', 'Host: a.test', 'X: ').length;
    return head('GET / HTTP/1.1', 'Host: a.test', `X: ${'x'.repeat(bytes - around)}`);
  };
  expect(readRequest(sized(16_384))).toMatchObject({ length: 16_384 });
  expect(readRequest(sized(16_385))).toEqual({ refused: 'a head that is too long', host: undefined });
  // Bytes behind the head do not count.
  expect(readRequest(Buffer.concat([sized(16_384), Buffer.from('body')]))).toMatchObject({ length: 16_384 });
  expect(readRequest(sized(16_385).subarray(0, 16_384))).toBe('incomplete');
  expect(readRequest(sized(20_000).subarray(0, 16_385))).toHaveProperty('refused', 'a head that is too long');
});

test('what asks for more than a request of HTTP/1 is read as far as it goes', () => {
  expect(request('GET * HTTP/1.1', 'Host: a.test')).toMatchObject({ refused: 'a target of no known form' });
  expect(good('GET HTTP://A.test?q HTTP/1.1', 'Host: a.test')).toMatchObject({ target: '/?q', host: 'a.test' });
  expect(good('GET http://a.test:81/x HTTP/1.1', 'Host: a.test:81')).toMatchObject({
    target: '/x',
    host: 'a.test',
    port: 81,
  });
  expect(good('GET / HTTP/1.0', 'Host: a.test', 'Connection: upgrade', 'Upgrade: websocket')).toMatchObject({
    ...{ version: '1.0', upgrade: false },
  });
  expect(good('GET / HTTP/1.1', 'Host: a.test', 'Connection: x', 'Upgrade: websocket').upgrade).toBe(false);
});

test('a WebSocket goes on as one, without the other options of its connection', () => {
  const read = good('GET / HTTP/1.1', 'Host: a.test', 'Connection: Upgrade', 'Upgrade: websocket', 'Keep: it');
  const lines = ['GET / HTTP/1.1', 'Host: a.test', 'Keep: it', 'Connection: upgrade', 'Upgrade: websocket', '', ''];
  expect(composeRequest(read, 'a.test', {}).toString()).toBe(lines.join('\r\n'));
});
