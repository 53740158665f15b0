import { expect, test } from 'bun:test';
import { get, host, startBoth } from './support/both-ends.ts';

// Each would make some pair of servers disagree about where a request ends. None may reach a sandbox, and nothing after
// it may be taken for a request.
const ambiguous: Record<string, string> = {
  'length and chunks': 'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'chunks and length': 'Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n',
  'two lengths': 'Content-Length: 0\r\nContent-Length: 30\r\n\r\n',
  'a list of lengths': 'Content-Length: 0, 30\r\n\r\n',
  'two codings': 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n',
  'an unknown coding': 'Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
  'a disguised coding': 'Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n',
  'a space before the colon': 'Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n',
  'a tab in the name': 'Transfer\t-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'a folded line': 'Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n',
  'a bare LF': 'X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'a bare CR': 'X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'a NUL': 'Transfer-Encoding: chunked\x00\r\n\r\n0\r\n\r\n',
  'a second host': 'Host: 80-two.localhost\r\n\r\n',
  'a signed length': 'Content-Length: +0\r\n\r\n',
  'a hexadecimal length': 'Content-Length: 0x0\r\n\r\n',
};

for (const [name, rest] of Object.entries(ambiguous)) {
  test(`a request with ${name} is refused, and its connection closed`, async () => {
    await using both = await startBoth();
    both.client.send(`POST / HTTP/1.1\r\n${host}${rest}${get}`);
    await both.client.until(client => client.ended);
    expect(both.client.received).toMatch(/^HTTP\/1\.1 (400|501) /);
    expect(both.client.received.match(/HTTP\/1\.1/g)?.length).toBe(1);
    expect(both.server.connections).toEqual([]);
  });
}

const brokenChunks: Record<string, string> = {
  'a bare LF after the size': '5\nhello\r\n0\r\n\r\n',
  'a size with a prefix': '0x5\r\nhello\r\n0\r\n\r\n',
  'a size that overflows': 'fffffffffffffffff5\r\nhello\r\n0\r\n\r\n',
  'more data than its size': '5\r\nhello!\r\n0\r\n\r\n',
  'a bare LF in an extension': '5;a\nb\r\nhello\r\n0\r\n\r\n',
  'a request in its trailer': `0\r\nGET / HTTP/1.1\r\n${host}\r\n`,
};

for (const [name, body] of Object.entries(brokenChunks)) {
  test(`a chunked body with ${name} ends both connections`, async () => {
    await using both = await startBoth();
    both.client.send(`POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`);
    const upstream = await both.server.accept();
    await upstream.expect('\r\n\r\n');
    both.client.send(body + get);
    await both.client.until(client => client.ended);
    expect(both.client.received).toMatch(/^HTTP\/1\.1 400 /);
    expect(await upstream.over()).toBe('reset');
    expect(upstream.received).toBe('');
  });
}

// Answers of a hostile sandbox meant to pass its bytes off as the response to somebody else's request.
const poisoned: Record<string, string> = {
  'length and chunks': 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n',
  'a bare LF': 'HTTP/1.1 200 OK\nContent-Length: 0\n\n',
  'no protocol': 'hello\r\n\r\n',
  'an unasked switch': 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
  'endless interim responses': 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(40),
};

for (const [name, response] of Object.entries(poisoned)) {
  test(`a response with ${name} does not pass`, async () => {
    await using both = await startBoth();
    both.client.send(get);
    const upstream = await both.server.accept();
    await upstream.expect('\r\n\r\n');
    upstream.send(response);
    await both.client
      .until(client => client.received.includes('"code":503}') || client.end === 'reset')
      .catch(() => {});
    expect(await upstream.over()).toBe('reset');
    expect(both.client.received).not.toContain('HTTP/1.1 200');
  });
}

test('bytes after a response reach nobody', async () => {
  await using both = await startBoth();
  both.client.send(get);
  const first = await both.server.accept();
  await first.expect('\r\n\r\n');
  first.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison');
  await both.client.expect('ok');
  both.client.send(get);
  const second = await both.server.accept();
  await second.expect('\r\n\r\n');
  second.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nclean');
  expect(await both.client.expect('clean')).not.toContain('poison');
});

test('bytes that come before the next request reach nobody', async () => {
  await using both = await startBoth();
  both.client.send(get);
  const first = await both.server.accept();
  await first.expect('\r\n\r\n');
  first.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  await both.client.expect('ok');
  first.send('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison');
  expect(await first.over()).toBe('reset');
  both.client.send(get);
  const second = await both.server.accept();
  await second.expect('\r\n\r\n');
  second.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nclean');
  expect(await both.client.expect('clean')).not.toContain('poison');
});

test('cleartext HTTP/2 is not offered to the agent or the API', async () => {
  await using both = await startBoth({ api: request => Response.json({ upgrade: request.headers.get('upgrade') }) });
  const h2c = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n';
  both.client.send(`GET /health HTTP/1.1\r\nHost: 49983-one.localhost\r\n${h2c}`);
  const upstream = await both.server.accept();
  expect((await upstream.expect('\r\n\r\n')).toLowerCase()).not.toContain('upgrade');
  upstream.send('HTTP/1.1 204 No Content\r\n\r\n');
  await both.client.expect('\r\n\r\n');
  both.client.send(`GET / HTTP/1.1\r\nHost: localhost\r\n${h2c}`);
  await both.client.expect('{"upgrade":null}');
});
