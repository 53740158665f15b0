import { expect, test } from 'bun:test';
import { get, host, startBoth } from './support/both-ends.ts';
import { startFixture, to } from './support/fixture.ts';

function startWebSocketServer() {
  const closes: number[] = [];
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request, self) => (self.upgrade(request) ? undefined : new Response('plain')),
    websocket: {
      maxPayloadLength: 64_000_000,
      message: (socket, message) => void socket.send(message),
      close: (_, code) => void closes.push(code),
    },
  });
  return { server, closes, port: Number(server.port) };
}

/** The runtime's WebSocket takes headers, which the types of the browser's don't know. */
function openWebSocket(url: string, headers: Record<string, string>): WebSocket {
  return new WebSocket(url, { headers } as unknown as string[]);
}

test('WebSocket: messages of any size both ways, and the close code', async () => {
  await using fixture = startFixture();
  const { server, closes, port } = startWebSocketServer();
  await using _ = server;
  fixture.sandbox('one');
  const socket = openWebSocket(`ws://127.0.0.1:${fixture.port}/socket`, to('one', port));
  socket.binaryType = 'arraybuffer';
  await new Promise(resolve => socket.addEventListener('open', resolve));
  for (const size of [0, 1, 125, 126, 65_536, 10_000_000]) {
    const answer = new Promise<MessageEvent>(resolve => socket.addEventListener('message', resolve, { once: true }));
    const sent = crypto.getRandomValues(new Uint8Array(Math.min(size, 65_536)));
    const message = new Uint8Array(size).map((_, i) => sent[i % sent.length] as number);
    socket.send(message);
    expect(Buffer.compare(Buffer.from((await answer).data), message)).toBe(0);
  }
  const closed = new Promise<CloseEvent>(resolve => socket.addEventListener('close', resolve));
  socket.close(4321, 'bye');
  expect((await closed).code).toBe(4321);
  while (closes.length === 0) await Bun.sleep(1);
  expect(closes).toEqual([4321]);
});

test('WebSocket: the end of the sandbox is no orderly close', async () => {
  await using fixture = startFixture();
  const { server, port } = startWebSocketServer();
  await using _ = server;
  fixture.sandbox('one');
  const socket = openWebSocket(`ws://127.0.0.1:${fixture.port}/`, { Host: `${port}-one.localhost` });
  await new Promise(resolve => socket.addEventListener('open', resolve));
  const closed = new Promise<CloseEvent>(resolve => socket.addEventListener('close', resolve));
  fixture.remove('one');
  expect((await closed).code).toBe(1006);
});

test('any protocol may be switched to, and bytes around the switch are not lost', async () => {
  await using both = await startBoth();
  both.client.send(`GET / HTTP/1.1\r\n${host}Connection: keep-alive, Upgrade\r\nUpgrade: thing/2\r\n\r\nearly`);
  const upstream = await both.server.accept();
  const head = await upstream.expect('\r\n\r\n');
  expect(head).toContain('Upgrade: thing/2\r\n');
  expect(head).toContain('Connection: Upgrade\r\n');
  const answer = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: thing/2\r\n\r\nfirst';
  upstream.send(answer);
  expect(await both.client.expect('first')).toBe(answer);
  await upstream.expect('early');
  both.client.send(get);
  expect(await upstream.expect('\r\n\r\n')).toBe(get);
});

test('what a switch says for a whole origin is lost on the way to another one', async () => {
  const cookie = 'Set-Cookie: a=b\r\n';
  const answer = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n${cookie}Upgrade: thing\r\n\r\nfirst`;
  for (const named of [host, 'Host: localhost\r\nE2b-Sandbox-Id: one\r\nE2b-Sandbox-Port: 80\r\n']) {
    await using both = await startBoth();
    both.client.send(`GET / HTTP/1.1\r\n${named}Connection: Upgrade\r\nUpgrade: thing\r\n\r\n`);
    const upstream = await both.server.accept();
    await upstream.expect('\r\n\r\n');
    upstream.send(answer);
    expect(await both.client.expect('first')).toBe(named === host ? answer : answer.replace(cookie, ''));
    upstream.send('second');
    await both.client.expect('second');
  }
});

test('each direction of a switched connection closes for itself', async () => {
  await using both = await startBoth();
  const switchProtocols = async () => {
    both.client.send(`GET / HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: thing\r\n\r\n`);
    const upstream = await both.server.accept();
    await upstream.expect('\r\n\r\n');
    upstream.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: thing\r\n\r\n');
    await both.client.expect('\r\n\r\n');
    return upstream;
  };
  const upstream = await switchProtocols();
  both.client.halfClose();
  await upstream.until(raw => raw.ended);
  upstream.send('still here');
  await both.client.expect('still here');
  upstream.halfClose();
  expect(await both.client.over()).toBe('closed');
  expect(await upstream.over()).toBe('closed');
});

test('a refused switch is an ordinary response', async () => {
  await using both = await startBoth();
  both.client.send(`GET / HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: thing\r\n\r\n`);
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  const refusal = 'HTTP/1.1 426 Upgrade Required\r\nUpgrade: other\r\nContent-Length: 2\r\n\r\nno';
  upstream.send(refusal);
  expect(await both.client.expect('no')).toBe(refusal);
  both.client.send(get);
  await upstream.expect('GET / HTTP/1.1');
});

test('either side’s reset of a switched connection reaches the other', async () => {
  for (const end of ['client', 'upstream'] as const) {
    await using both = await startBoth();
    both.client.send(`GET / HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: thing\r\n\r\n`);
    const upstream = await both.server.accept();
    await upstream.expect('\r\n\r\n');
    upstream.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: thing\r\n\r\n');
    await both.client.expect('\r\n\r\n');
    (end === 'client' ? both.client : upstream).reset();
    expect(await (end === 'client' ? upstream : both.client).over()).toBe('reset');
  }
});
