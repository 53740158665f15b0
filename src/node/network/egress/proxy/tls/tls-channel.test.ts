import { afterEach, expect, jest, test } from 'bun:test';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { issueCertificate, makeAuthority } from '../../../../../base/crypto/certificate.ts';
import { channelHandlers, SocketChannel, type Channel } from '../channel.ts';
import { acceptTls, connectTls } from './tls-channel.ts';

const authority = makeAuthority('test', 1);
const pair = issueCertificate(authority, ['a.test'], 1);

const undo: (() => unknown)[] = [];
afterEach(async () => {
  jest.useRealTimers();
  for (const step of undo.splice(0).reverse()) await step();
});

/** Collects what the user of a channel gets, and lets a test wait for it. */
function heardOn(channel: Channel) {
  const heard = { text: '', events: [] as string[] };
  let changed = () => {};
  const note = (event: string) => {
    heard.events.push(event);
    changed();
  };
  channel.use({
    data(bytes) {
      heard.text += bytes.toString('latin1');
      changed();
    },
    drained: () => note('drained'),
    ended: () => note('ended'),
    closed: () => note('closed'),
  });
  const until = async (holds: () => boolean) => {
    while (!holds()) await new Promise<void>(resolve => (changed = resolve));
  };
  return { heard, until };
}

const share = { charged: 0, charge: () => void share.charged++ };

/** A TLS client, what its connection is taken for, and the outcome. */
async function accepted(
  options: { ca?: string; ALPNProtocols?: string[] } = { ca: authority.certificate },
  by = (port: number) => port,
) {
  const { port, below } = listening();
  const client = connect({ host: '127.0.0.1', port: by(port), servername: 'a.test', ...options });
  client.on('error', () => {}); // `close` follows
  undo.push(() => client.destroy());
  const taken = acceptTls(await below, pair);
  return { client, below: await below, taken };
}

/** A port, and the first connection to it. */
function listening() {
  const { promise: below, resolve } = Promise.withResolvers<SocketChannel>();
  const listener = Bun.listen<SocketChannel>({
    hostname: '127.0.0.1',
    port: 0,
    allowHalfOpen: true,
    socket: {
      ...channelHandlers,
      open(socket) {
        socket.data = new SocketChannel(socket);
        resolve(socket.data);
      },
    },
  });
  undo.push(() => listener.stop(true));
  return { port: listener.port, below };
}

const closed = (socket: TLSSocket) => new Promise<void>(resolve => void socket.once('close', () => resolve()));
const got = (socket: TLSSocket, text: string) =>
  new Promise<void>(resolve => {
    let have = '';
    socket.on('data', (bytes: Buffer) => {
      have += bytes.toString('latin1');
      if (have === text) resolve();
    });
  });

test('what a client sends and gets goes through in both directions, up to the end of each', async () => {
  const { client, taken } = await accepted({ ca: authority.certificate, ALPNProtocols: ['h2', 'http/1.1'] });
  const channel = await taken;
  client.write('hello');
  const { heard, until } = heardOn(channel);
  await until(() => heard.text === 'hello');
  expect([client.authorized, client.alpnProtocol, channel.isClosed]).toEqual([true, 'http/1.1', false]);
  const answered = got(client, 'answer');
  expect([channel.write(Buffer.from('')), channel.write(Buffer.from('answer'))]).toEqual([true, true]);
  await answered;
  client.end('last');
  await until(() => heard.events.includes('ended'));
  expect(heard.text).toBe('hellolast');
  channel.end();
  await until(() => heard.events.includes('closed'));
  expect([channel.isClosed, channel.write(Buffer.from('late'))]).toEqual([true, true]);
});

test('many megabytes pass in order, no faster than they are taken', async () => {
  const { client, taken } = await accepted();
  const channel = await taken;
  const { heard, until } = heardOn(channel);
  const content = Buffer.alloc(8 << 20, '0123456789abcdef');
  let received = 0;
  const whole = new Promise<void>(resolve => {
    client.on('data', (bytes: Buffer) => {
      received += bytes.length;
      if (received === content.length) resolve();
    });
  });
  client.pause();
  expect(channel.write(content)).toBe(false);
  client.resume();
  await Promise.all([whole, until(() => heard.events.includes('drained'))]);
  channel.pause();
  client.write(content);
  await Bun.sleep(5);
  expect(heard.text).toBe('');
  channel.resume();
  await until(() => heard.text.length === content.length);
  expect(heard.text === content.toString('latin1')).toBe(true);
});

test('neither side gets further ahead than the other takes', async () => {
  const content = Buffer.alloc(32 << 20, 'x');
  const it = { sent: 0, got: 0 };
  const { port, below } = listening();
  const connecting = Bun.connect({
    ...{ hostname: '127.0.0.1', port, tls: { ca: authority.certificate, serverName: 'a.test' } as Bun.TLSOptions },
    socket: { data: (_, bytes) => void (it.got += bytes.length), drain: () => void send() },
  });
  const taken = acceptTls(await below, pair);
  const client = await connecting;
  const send = () => (it.sent += Math.max(client.write(content.subarray(it.sent)), 0));
  undo.push(() => client.terminate());
  const channel = await taken;
  const { heard, until } = heardOn(channel);
  client.pause();
  expect(channel.write(content)).toBe(false);
  channel.pause();
  send();
  // Nothing more moves once the kernel has taken all it can.
  for (let before = -1; before !== it.sent; await Bun.sleep(50)) before = it.sent;
  expect([it.sent < content.length, heard.events]).toEqual([true, []]);
  client.resume();
  channel.resume();
  await until(() => heard.events.includes('drained') && heard.text.length === content.length);
  while (it.got < content.length) await Bun.sleep(1);
});

test('a handshake that is over has all the time', async () => {
  jest.useFakeTimers();
  const { taken, client } = await accepted();
  const channel = await taken;
  const { heard, until } = heardOn(channel);
  const { below, served } = await reached();
  const other = await connectTls(below, 'a.test', authority.certificate);
  await served;
  jest.advanceTimersByTime(60_000);
  client.write('hello');
  await until(() => heard.text === 'hello');
  expect([channel.isClosed, other.isClosed]).toEqual([false, false]);
});

test('a handshake that takes too long is given up', async () => {
  jest.useFakeTimers();
  for (const side of ['client', 'server'] as const) {
    const silent = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
    undo.push(() => silent.stop(true));
    const { below } = await connected(silent.port);
    const waiting = side === 'client' ? acceptTls(below, pair) : connectTls(below, 'a.test', authority.certificate);
    const failed = waiting.then(
      () => 'done',
      (error: Error) => error.message,
    );
    jest.advanceTimersByTime(9_999);
    expect(below.isClosed).toBe(false);
    jest.advanceTimersByTime(1);
    expect(await failed).toBe('the handshake took too long');
  }
});

test('a next user hears what comes from then on, and the one before does not', async () => {
  const { client, taken } = await accepted();
  const channel = await taken;
  const first = heardOn(channel);
  client.write('a');
  await first.until(() => first.heard.text === 'a');
  const second = heardOn(channel);
  client.end('b');
  await second.until(() => second.heard.events.includes('ended'));
  expect([first.heard.text, first.heard.events, second.heard.text]).toEqual(['a', [], 'b']);
});

test('a connection that is broken off here is broken off there', async () => {
  const { client, below, taken } = await accepted();
  const channel = await taken;
  const gone = closed(client);
  channel.abort();
  await gone;
  while (!below.isClosed) await Bun.sleep(1);
});

test('a connection that breaks below is closed', async () => {
  const { below, taken } = await accepted();
  const { heard, until } = heardOn(await taken);
  below.socket.terminate();
  await until(() => heard.events.includes('closed'));
  expect(below.isClosed).toBe(true);
});

test('a client that does not trust us, or leaves in the middle of the handshake, is broken off at once', async () => {
  const { below, taken } = await accepted({});
  await expect(taken).rejects.toThrow('the client broke the handshake off');
  while (!below.isClosed) await Bun.sleep(1);
});

test('a client that says all at once and ends is heard', async () => {
  const { client, taken } = await accepted({ ca: authority.certificate }, collected);
  client.once('secureConnect', () => client.end('all'));
  const { heard, until } = heardOn(await taken);
  await until(() => heard.events.includes('ended'));
  expect(heard.text).toBe('all');
});

/** Passes connections to a port, and delivers everything behind the first piece at once, with the end. */
function collected(port: number): number {
  const listener = Bun.listen<{ to: Promise<Bun.Socket>; rest: Buffer[]; pieces: number }>({
    hostname: '127.0.0.1',
    port: 0,
    allowHalfOpen: true,
    socket: {
      open(from) {
        const socket = { data: (_: Bun.Socket, bytes: Buffer) => void from.write(bytes) };
        from.data = {
          to: Bun.connect({ hostname: '127.0.0.1', port, allowHalfOpen: true, socket }),
          rest: [],
          pieces: 0,
        };
      },
      async data({ data }, bytes) {
        if (data.pieces++ > 0) data.rest.push(Buffer.from(bytes));
        else (await data.to).write(Buffer.from(bytes));
      },
      end: async ({ data }) => void (await data.to).end(Buffer.concat(data.rest)),
    },
  });
  undo.push(() => listener.stop(true));
  return listener.port;
}

/** A server, and a connection to it on which nothing was sent. */
async function reached(certificate = pair) {
  const server = createServer({
    key: certificate.key,
    cert: certificate.certificate,
    ALPNProtocols: ['h2', 'http/1.1'],
  });
  const served = new Promise<TLSSocket>(resolve => server.once('secureConnection', resolve));
  server.on('tlsClientError', () => {}); // its client hears it
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()));
  undo.push(() => server.close());
  const { port } = server.address() as { port: number };
  return { ...(await connected(port)), served };
}

async function connected(port: number) {
  const gone = { count: 0 };
  const socket = await Bun.connect<SocketChannel>({
    hostname: '127.0.0.1',
    port,
    allowHalfOpen: true,
    socket: {
      ...channelHandlers,
      open(opened) {
        opened.data = new SocketChannel(opened, share);
        opened.data.whenGone = () => void gone.count++;
      },
    },
  } as Bun.TCPSocketConnectOptions<SocketChannel>);
  undo.push(() => socket.terminate());
  return { below: socket.data, gone };
}

test('a connection to a server that shows a certificate for its name is used', async () => {
  const { below, gone, served } = await reached();
  const channel = await connectTls(below, 'a.test', authority.certificate);
  const server = await served;
  expect([server.alpnProtocol, server.servername]).toEqual(['http/1.1', 'a.test']);
  const before = share.charged;
  const { heard, until } = heardOn(channel);
  server.write('hello');
  await until(() => heard.text === 'hello');
  expect(share.charged).toBeGreaterThan(before);
  const answered = got(server, 'answer');
  channel.write(Buffer.from('answer'));
  await answered;
  server.end('last');
  await until(() => heard.events.includes('ended'));
  expect([heard.text, gone.count]).toEqual(['hellolast', 0]);
  channel.end();
  await until(() => heard.events.includes('closed'));
  expect([channel.isClosed, gone.count]).toEqual([true, 1]);
});

test.each([
  ['another name', 'b.test', authority, pair],
  ['an authority that nobody knows', 'a.test', makeAuthority('other', 1), pair],
])('a server with a certificate for %s is broken off', async (_, name, roots, certificate) => {
  const { below, gone } = await reached(certificate);
  await expect(connectTls(below, name, roots.certificate)).rejects.toThrow();
  while (gone.count === 0) await Bun.sleep(1);
  expect(gone.count).toBe(1);
});

test('a server that closes in the middle of the handshake, or speaks something else, is given up', async () => {
  for (const answer of ['', 'HTTP/1.1 400 Bad Request\r\n\r\n']) {
    const listener = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: { data: socket => void socket.end(answer) },
    });
    undo.push(() => listener.stop(true));
    const { below, gone } = await connected(listener.port);
    await expect(connectTls(below, 'a.test', authority.certificate)).rejects.toThrow();
    while (gone.count === 0) await Bun.sleep(1);
    expect(gone.count).toBe(1);
  }
});
