import { afterEach, expect, test } from 'bun:test';
import { connect as connectTls, createServer, type TLSSocket } from 'node:tls';
import { issueCertificate, makeAuthority } from '../../../../base/crypto/certificate.ts';
import { type EgressPolicy, parseAddress } from '../../../../protocol/network/network.ts';
import { slotOf } from '../../../layout.ts';
import type { Denial, PlatformInside } from '../proxies/messages.ts';
import { channelHandlers, SocketChannel } from './channel.ts';
import { connect } from './dial.ts';
import { createProxiedSandboxes } from './sandboxes.ts';
import { serve } from './serve.ts';
import { createDescriptors } from './shares/descriptors.ts';
import { createTurns } from './shares/turns.ts';
import { createHostCertificates } from './tls/host-certificates.ts';

// Connections over TLS, opened or not. `serve.test.ts` has the others.

const authority = makeAuthority('test', 1);
const byName: EgressPolicy = { internetAccess: false, allowOut: ['a.test'] };

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** An object whose changes a test can wait for. */
function watched<T extends object>(state: T) {
  let changed = () => {};
  const change = (how: (state: T) => void) => {
    how(state);
    changed();
  };
  const until = async (holds: (state: T) => boolean) => {
    while (!holds(state)) await new Promise<void>(resolve => (changed = resolve));
  };
  return { state, change, until };
}

/** A port whose connections stand for those of a sandbox to port 443; what they reach is at `to`. */
function scene(policy: EgressPolicy, to: number, platform?: PlatformInside) {
  const sandboxes = createProxiedSandboxes(
    0,
    createTurns(() => {}),
    () => {},
  );
  sandboxes.set(1, policy);
  const sandbox = sandboxes.at(slotOf(0, 1).address)!;
  const denied: Denial[] = [];
  sandbox.deny = denial => void denied.push(denial);
  const reached: (string | number)[][] = [];
  const address = platform?.insideAddress ?? '203.0.113.5';
  const context = {
    ...{ resolver: undefined as never, descriptors: createDescriptors(1000), opensAllowedNames: false, platform },
    ...{ certificateFor: createHostCertificates(authority), roots: authority.certificate },
  };
  const listener = Bun.listen<SocketChannel>({
    ...{ hostname: '127.0.0.1', port: 0, allowHalfOpen: true },
    socket: {
      ...channelHandlers,
      open(socket) {
        const channel = (socket.data = new SocketChannel(socket, sandbox.share));
        const destination = { address, octets: parseAddress(address)!, port: 443 };
        void serve(context, sandbox, channel, destination, async ({ host, port }, { signal, account }) => {
          reached.push([host, port]);
          return { channel: await connect('127.0.0.1', to, { signal, account }), address: '203.0.113.77' };
        });
      },
    },
  });
  undo.push(() => listener.stop(true));
  return { sandbox, denied, reached, listenPort: listener.port };
}

const request = (host: string, ...lines: string[]) =>
  ['GET / HTTP/1.1', `Host: ${host}`, ...lines, '', ''].join('\r\n');
const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** A TLS server for a.test that answers the first request, and what it received. */
async function tlsServer() {
  const it = watched({ text: '', names: [] as unknown[] });
  const { key, certificate } = issueCertificate(authority, ['a.test'], 1);
  const listener = createServer({ key, cert: certificate }, (socket: TLSSocket) => {
    socket.on('error', () => {});
    it.change(state => state.names.push(socket.servername));
    socket.on('data', (bytes: Buffer) => {
      it.change(state => (state.text += bytes.toString('latin1')));
      socket.write(ok);
    });
  });
  listener.on('tlsClientError', () => {});
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', () => resolve()));
  undo.push(() => listener.close());
  return { ...it, port: (listener.address() as { port: number }).port };
}

/** A TLS client next to the connection that `client` made, and what it received. */
async function tlsClient(port: number, servername = 'a.test') {
  const heard = watched({ text: '', isClosed: false });
  const socket = connectTls({ host: '127.0.0.1', port, servername, ca: authority.certificate });
  socket.on('data', (bytes: Buffer) => heard.change(state => (state.text += bytes.toString('latin1'))));
  socket.on('close', () => heard.change(state => (state.isClosed = true)));
  socket.on('error', () => {}); // `close` follows
  undo.push(() => socket.destroy());
  return { ...heard, socket };
}

test('a connection allowed by the name in TLS passes unopened, to an address that the proxy finds', async () => {
  const far = await tlsServer();
  const { listenPort, reached } = scene(byName, far.port);
  const { socket, until } = await tlsClient(listenPort);
  socket.write('GET');
  await until(({ text }) => text === ok);
  expect([far.state.text, far.state.names, reached]).toEqual(['GET', ['a.test'], [['a.test', 443]]]);
});

test('a connection that has to be inspected is opened, and the server must prove its name', async () => {
  const far = await tlsServer();
  const policy = { ...byName, headerRules: { 'a.test': { 'X-Key': 'k' } } };
  const { listenPort, sandbox, denied } = scene(policy, far.port);
  let charged = 0;
  Object.assign(sandbox, { share: { charge: () => void charged++ } });
  const { socket, until } = await tlsClient(listenPort);
  socket.write(request('a.test'));
  await until(({ text }) => text === ok);
  expect([far.state.text, denied]).toEqual([request('a.test', 'X-Key: k'), []]);
  expect(charged).toBeGreaterThan(0);
  const plain = Bun.listen({
    ...{ hostname: '127.0.0.1', port: 0 },
    socket: { data: socket => void socket.write('no TLS') },
  });
  undo.push(() => plain.stop(true));
  const other = scene(policy, plain.port);
  const failing = await tlsClient(other.listenPort);
  failing.socket.write(request('a.test'));
  await failing.until(({ isClosed }) => isClosed);
  expect([failing.state.text, other.denied]).toEqual(['', []]);
});

test('the connection to the edge has no TLS, whether the client uses it or not', async () => {
  const got = Promise.withResolvers<string>();
  const edge = Bun.listen({
    ...{ hostname: '127.0.0.1', port: 0 },
    socket: { data: (_, bytes) => got.resolve(bytes.toString('latin1')) },
  });
  undo.push(() => edge.stop(true));
  const { listenPort, reached } = scene({ internetAccess: true }, 0, {
    ...{ domain: 'box.test', insideAddress: '198.19.1.1', httpPorts: [80], tlsPorts: [443] },
    edge: { address: '127.0.0.1', port: edge.port },
  });
  const { socket } = await tlsClient(listenPort, '80-abc.box.test');
  socket.write(request('80-abc.box.test'));
  expect([await got.promise, reached]).toEqual([request('80-abc.box.test'), []]);
});
