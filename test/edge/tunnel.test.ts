import { expect, test } from 'bun:test';
import { createServer, type Server, type Socket } from 'node:net';
import { tunnelProtocol } from '../../src/protocol/network/tunnel.ts';
import { startFixture } from './support/fixture.ts';

const token = 'a'.repeat(64);

/** A TCP server of a sandbox. */
async function listening(onSocket: (socket: Socket) => void): Promise<AsyncDisposable & { port: number }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer({ allowHalfOpen: true }, socket => {
    sockets.add(socket.on('error', () => {}));
    onSocket(socket);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as { port: number }).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

type Opened = {
  socket: WebSocket;
  received: () => Buffer;
  texts: string[];
  closed: Promise<{ code: number; wasClean: boolean }>;
};

/** A WebSocket to a port, opened as a program does. Fails if it is refused. */
async function open(url: string, port: number, protocols: string[] = [tunnelProtocol], key = token): Promise<Opened> {
  const headers = { 'Svc-Sandbox-Id': 'one', 'X-Access-Token': key };
  const options = { headers, protocols } as unknown as string[];
  const socket = new WebSocket(`${url.replace('http', 'ws')}/tcp/${port}`, options);
  socket.binaryType = 'arraybuffer';
  const parts: Buffer[] = [];
  const texts: string[] = [];
  socket.addEventListener('message', ({ data }) => {
    if (typeof data === 'string') texts.push(data);
    else parts.push(Buffer.from(data as ArrayBuffer));
  });
  const closed = new Promise<{ code: number; wasClean: boolean }>(resolve =>
    socket.addEventListener('close', ({ code, wasClean }) => resolve({ code, wasClean })),
  );
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve());
    socket.addEventListener('error', () => reject(new Error('refused')));
  });
  return { socket, received: () => Buffer.concat(parts), texts, closed };
}

async function until(holds: () => boolean): Promise<void> {
  for (const deadline = performance.now() + 20_000; !holds();) {
    if (performance.now() > deadline) throw new Error('it did not come to that');
    await Bun.sleep(2);
  }
}

function started() {
  const fixture = startFixture();
  fixture.sandbox('one', { ingress: { accessToken: token, trafficAccessToken: 'for the public' } });
  return fixture;
}

test('bytes pass both ways, those of a server that speaks first too, and each end is told of the other', async () => {
  await using fixture = started();
  await using server = await listening(socket => {
    socket.write('hello first\n');
    socket.on('data', bytes => socket.write(bytes));
    socket.on('end', () => socket.end('bye'));
  });
  const { socket, received, texts, closed } = await open(fixture.url, server.port);
  await until(() => received().toString() === 'hello first\n');
  const sent = crypto.getRandomValues(new Uint8Array(50_000));
  for (let at = 0; at < sent.length; at += 10_000) socket.send(sent.subarray(at, at + 10_000));
  // Nothing more comes from this side; what was sent still comes back.
  socket.send('');
  expect(await closed).toMatchObject({ code: 1000 });
  expect(received()).toEqual(Buffer.concat([Buffer.from('hello first\n'), sent, Buffer.from('bye')]));
  expect(texts.every(text => text === '')).toBe(true);
});

test('a server that ends first is told of by an empty text, and still hears the client', async () => {
  await using fixture = started();
  let heard = '';
  const ended = Promise.withResolvers<void>();
  await using server = await listening(socket => {
    socket.end('all');
    socket.on('data', bytes => (heard += bytes)).on('end', () => ended.resolve());
  });
  const { socket, received, texts, closed } = await open(fixture.url, server.port);
  await until(() => texts.length > 0);
  expect(received().toString()).toBe('all');
  socket.send(Buffer.from('after that'));
  socket.send('');
  await ended.promise;
  expect(heard).toBe('after that');
  expect(await closed).toMatchObject({ code: 1000 });
  // A client that has not asked for this is told by a close.
  const simple = await open(fixture.url, server.port, []);
  expect(await simple.closed).toMatchObject({ code: 1000 });
  expect([simple.received().toString(), simple.texts]).toEqual(['all', []]);
});

test('a reader that stops makes the writer wait, in both directions', async () => {
  await using fixture = started();
  const total = 64 << 20;
  let written = 0;
  let taken = 0;
  const go = Promise.withResolvers<void>();
  await using server = await listening(socket => {
    socket.pause();
    void go.promise.then(() => socket.on('data', bytes => (taken += bytes.length)).resume());
    const block = Buffer.alloc(1 << 16, 1);
    const more = () => {
      while (written < total) {
        written += block.length;
        if (!socket.write(block)) return void socket.once('drain', more);
      }
    };
    more();
  });
  const { socket, received } = await open(fixture.url, server.port);
  const block = new Uint8Array(1 << 20);
  for (let i = 0; i < 64; i++) socket.send(block);
  // The server reads nothing: the data stays with the client, except what kernels and the edge hold.
  await until(() => received().length > 1 << 20);
  expect(socket.bufferedAmount).toBeGreaterThan(32 << 20);
  expect(taken).toBe(0);
  go.resolve();
  await until(() => taken === total && received().length === total);
  socket.close();
});

test('who may not, what is no port and what is no WebSocket is refused before anything is dialed', async () => {
  await using fixture = started();
  fixture.sandbox('open');
  await using server = await listening(socket => socket.end('x'));
  await expect(open(fixture.url, server.port, [], 'wrong')).rejects.toThrow('refused');
  const answer = async (path: string, headers: Record<string, string>, sandbox = 'one') => {
    const response = await fetch(`${fixture.url}${path}`, { headers: { 'Svc-Sandbox-Id': sandbox, ...headers } });
    return `${response.status} ${((await response.json()) as { message: string }).message}`;
  };
  const upgrade = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  };
  const right = { 'X-Access-Token': token, ...upgrade };
  const path = `/tcp/${server.port}`;
  expect(await answer(path, upgrade)).toMatch(/^403 .*X-Access-Token is missing/);
  expect(await answer(path, { ...upgrade, 'X-Access-Token': 'wrong' })).toMatch(/^403 .*wrong/);
  for (const bad of ['0', '65536', '080', 'x', '', '22/x', '22?x'])
    expect(await answer(`/tcp/${bad}`, right)).toMatch(/^400 .*PORT/);
  // Its routes for the platform are refused by their paths: raw bytes would get around that.
  expect(await answer('/tcp/49983', right)).toMatch(/^400 .*agent's port/);
  for (const less of ['Upgrade', 'Sec-WebSocket-Version', 'Sec-WebSocket-Key'])
    expect(await answer(path, { ...right, [less]: 'x' })).toMatch(/^400 .*WebSocket/);
  expect(fixture.dials).toEqual([]);
  expect(await answer(path, right, 'none')).toMatch(/^502/);
  const { received, closed } = await open(fixture.url, server.port, []);
  await closed;
  expect(received().toString()).toBe('x');
});

test('what is no frame ends it, and so does the end of the sandbox', async () => {
  await using fixture = started();
  const seen = Promise.withResolvers<void>();
  await using server = await listening(socket => socket.on('close', () => seen.resolve()));
  const first = await open(fixture.url, server.port, []);
  first.socket.send('text is no byte');
  expect(await first.closed).toMatchObject({ code: 1003 });
  await seen.promise;
  const second = await open(fixture.url, server.port);
  fixture.remove('one');
  expect((await second.closed).wasClean).toBe(false);
});
