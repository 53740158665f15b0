import { expect, test } from 'bun:test';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { acceptOf, FrameReader, maskedFrame, opcode, shortFrame } from '../../base/websocket-frames.ts';
import { tunnelProtocol } from '../../protocol/network/tunnel.ts';
import { AtollError } from '../../base/error.ts';
import { forwardCommand } from './forward.ts';
import { openTunnel } from './open.ts';

// Against an installation without sandboxes that speaks as the edge does: bytes sent to a port come back reversed.

const sandbox = { sandboxID: 'i1', envdAccessToken: 'token', state: 'running' };
const listening = async (server: Server): Promise<number> => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as { port: number }).port;
};

/** Accepts tunnels; `answer` replaces the opening answer. */
async function edge(answer?: (key: string) => string) {
  const heads: string[] = [];
  const open = new Set<Socket>();
  let taken = 0;
  const server = createServer({ allowHalfOpen: true }, socket => {
    open.add(socket);
    socket.on('error', () => {}).on('close', () => open.delete(socket));
    socket.on('end', () => heads.length > 0 && socket.end());
    let received: Buffer[] = [];
    const frames = new FrameReader({
      data(bytes) {
        taken += bytes.length;
        received.push(Buffer.from(bytes));
      },
      messageEnd(isText) {
        if (!isText) return;
        const whole = Buffer.concat(received).reverse();
        received = [];
        socket.write(shortFrame(opcode.binary, whole.subarray(0, 120)));
        socket.write(shortFrame(opcode.text));
      },
      control: code => void (code === opcode.close && socket.end()),
    });
    let head = '';
    socket.on('data', (bytes: Buffer) => {
      if (head !== '') return void frames.take(Buffer.from(bytes), 0);
      head = bytes.toString();
      heads.push(head);
      const key = /Sec-WebSocket-Key: (\S+)/.exec(head)?.[1] ?? '';
      socket.write(answer?.(key) ?? `HTTP/1.1 101 Go\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`, 'latin1');
    });
  });
  const url = `http://127.0.0.1:${await listening(server)}`;
  return {
    url,
    heads,
    open,
    taken: () => taken,
    [Symbol.dispose]() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

/** A running `atoll forward i1 PORTS`. `at`: the address it printed for a port of the sandbox. */
function forward(url: string, ports: string[], answer: object = sandbox) {
  let said = '';
  let tell = () => {};
  const command = forwardCommand(
    'forward',
    async () => answer,
    () => ({ url, apiKey: '', domain: '' }),
  );
  const code = command.run(['i1', ...ports], {
    out: () => {},
    err(text) {
      said += text;
      tell();
    },
    isInteractive: false,
  });
  const at = async (port: number): Promise<number> => {
    for (;;) {
      const found = new RegExp(`127\\.0\\.0\\.1:(\\d+) leads to port ${port} of i1`).exec(said)?.[1];
      if (found !== undefined) return Number(found);
      await new Promise<void>(resolve => (tell = resolve));
    }
  };
  return { code, at, said: () => said };
}

const refusalOf = (promise: Promise<unknown>): Promise<AtollError> =>
  promise.then(
    () => expect.unreachable(),
    (error: AtollError) => error,
  );

test('carries both directions to the end of each, with the token', async () => {
  using installation = await edge();
  const { code, at, said } = forward(installation.url, ['0:5432', '0:80']);
  const socket = connect({ port: await at(5432), host: '127.0.0.1', allowHalfOpen: true });
  socket.end('hello');
  expect(Buffer.concat(await socket.toArray()).toString()).toBe('olleh');
  const head = installation.heads[0] ?? '';
  for (const line of ['GET /tcp/5432 HTTP/1.1', 'Svc-Sandbox-Id: i1', 'X-Access-Token: token'])
    expect(head.split('\r\n')).toContain(line);
  expect(head).toContain(`Sec-WebSocket-Protocol: ${tunnelProtocol}\r\n`);
  expect(await at(80)).not.toBe(await at(5432));
  process.emit('SIGINT');
  expect(await code).toBe(0);
  expect(said()).not.toContain('Port');
});

test.each([true, false])('ends when it is interrupted, with a connection that carries: %p', async carries => {
  using installation = await edge();
  const { code, at, said } = forward(installation.url, ['0:5432']);
  const port = await at(5432);
  const socket = connect({ port, host: '127.0.0.1' });
  socket.write('hello');
  const closed = new Promise(resolve =>
    socket
      .on('error', () => {})
      .on('close', resolve)
      .resume(),
  );
  while ((carries ? installation.taken() : installation.open.size) === 0) await new Promise(setImmediate);
  process.emit('SIGTERM');
  expect(await code).toBe(0);
  await closed;
  while (installation.open.size > 0) await new Promise(setImmediate);
  expect(said().split('\n')).toHaveLength(2);
  const again = connect({ port, host: '127.0.0.1' });
  expect(((await once(again, 'error').catch((error: unknown) => [error])) as [Error])[0].message).toContain('REFUSED');
});

test('keeps no port where it can not have all', async () => {
  const taken = createServer();
  const port = await listening(taken);
  const { code, at } = forward('http://127.0.0.1:1', ['0:5432', `${port}:80`]);
  const first = await at(5432);
  expect((await refusalOf(code)).message).toStartWith(`Port ${port} of this machine can't be used: `);
  const socket = connect({ port: first, host: '127.0.0.1' });
  await expect(once(socket, 'connect')).rejects.toThrow();
  taken.close();
});

test('says why a connection came to nothing, and takes the next', async () => {
  let isShut = true;
  using installation = await edge(key =>
    isShut
      ? 'HTTP/1.1 502 No\r\nContent-Length: 21\r\n\r\n{"message":"no port"}'
      : `HTTP/1.1 101 Go\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`,
  );
  const { code, at, said } = forward(installation.url, ['0:9']);
  const port = await at(9);
  await new Promise(resolve =>
    connect({ port, host: '127.0.0.1' })
      .on('error', () => {})
      .on('close', resolve)
      .resume(),
  );
  expect(said()).toContain('Port 9: no port\n');
  isShut = false;
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.end('ab');
  expect(Buffer.concat(await socket.toArray()).toString()).toBe('ba');
  process.emit('SIGHUP');
  expect(await code).toBe(0);
});

test.each([
  ['0', 'must be PORT or LOCAL_PORT:PORT, from 1 to 65535'],
  ['65536', 'must be PORT or LOCAL_PORT:PORT, from 1 to 65535'],
  ['65536:80', 'must be PORT or LOCAL_PORT:PORT, from 1 to 65535'],
  ['80:', 'must be PORT or LOCAL_PORT:PORT, from 1 to 65535'],
  ['x80', 'must be PORT or LOCAL_PORT:PORT, from 1 to 65535'],
  ['53/UDP', 'UDP does not pass'],
])('refuses the port %s', async (port, why) => {
  const { code, message } = await refusalOf(forward('', ['0:80', port]).code);
  expect([code, message.startsWith(port), message.includes(why)]).toEqual(['invalid', true, true]);
});

test('a sandbox that does not run is to be resumed first', async () => {
  const { code, message } = await refusalOf(forward('', ['80'], { ...sandbox, state: 'paused' }).code);
  expect([code, message]).toEqual(['conflict', 'i1 is paused: `atoll sandbox resume i1` first.']);
});

test.each([
  ['The installation answered 101.', 'HTTP/1.1 101 Go\r\nSec-WebSocket-Accept: of somebody else\r\n\r\n'],
  ['The installation answered 404.', 'HTTP/1.1 404 No\r\n\r\n<html>'],
  ['not yours', 'HTTP/1.1 403 No\r\n\r\n{"message":"not yours"}'],
  ['The installation answered nothing in HTTP.', 'SSH-2.0\r\n\r\n'],
  ['The connection failed: the answer is too long', 'x'.repeat(20_000)],
])('opens no tunnel: %s', async (why, answer) => {
  using installation = await edge(() => answer);
  const end = { url: installation.url, sandboxId: 'i1', accessToken: undefined, port: 80 };
  expect((await refusalOf(openTunnel(end))).message).toBe(why);
  expect(installation.heads[0]).not.toContain('X-Access-Token');
  while (installation.open.size > 0) await new Promise(setImmediate);
});

test('bytes that come with the answer are the first, and a connection that breaks off is told', async () => {
  using installation = await edge(
    key =>
      `HTTP/1.1 101 Go\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n` +
      shortFrame(opcode.binary, Buffer.from('ready')).toString('latin1'),
  );
  const tunnel = await openTunnel({ url: installation.url, sandboxId: 'i1', accessToken: undefined, port: 80 });
  expect(((await once(tunnel, 'data')) as [Buffer])[0].toString()).toBe('ready');
  for (const socket of installation.open) socket.destroy();
  const [error] = (await once(tunnel, 'error')) as [AtollError];
  expect(error.message).toBe('The connection to the sandbox broke off.');
});

test('a server that masks its frames is none', async () => {
  using installation = await edge();
  const tunnel = await openTunnel({ url: installation.url, sandboxId: 'i1', accessToken: undefined, port: 80 });
  for (const socket of installation.open) socket.write(maskedFrame(opcode.binary, Buffer.from('x')));
  const [error] = (await once(tunnel.resume(), 'error')) as [AtollError];
  expect(error.message).toBe('The other side speaks no WebSocket.');
});
