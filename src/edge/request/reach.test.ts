import { dlopen } from 'bun:ffi';
import { afterEach, expect, test } from 'bun:test';
import { fstatSync, mkdtempSync, rmSync } from 'node:fs';
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type TLSSocket } from 'node:tls';
import { issueCertificate, makeAuthority } from '../../base/crypto/certificate.ts';
import { AtollError } from '../../base/error.ts';
import { silentLog } from '../../base/telemetry/log.ts';
import type { FarEnd } from '../directory/directory.ts';
import { Http2Turns } from '../http2-turns.ts';
import { type EdgeLimits, limitsWithin } from '../limits.ts';
import { KnownProtocols, type Protocol } from '../upstream/known-protocols.ts';
import { SandboxTraffic } from '../upstream/sandbox-traffic.ts';
import { Teams } from '../upstream/team-traffic.ts';
import { type Upstream, upstreamHandlers } from '../upstream/upstream.ts';
import { reachApi, reachPort, reachSandbox } from './reach.ts';

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0).reverse()) step();
});

/** A connected descriptor, as the node passes it. */
const { socket, connect, fcntl } = dlopen('libc.so.6', {
  socket: { args: ['int', 'int', 'int'], returns: 'int' },
  connect: { args: ['int', 'ptr', 'u32'], returns: 'int' },
  fcntl: { args: ['int', 'int', 'int'], returns: 'int' },
}).symbols;
function dialLoopback(port: number): number {
  const fd = socket(2, 1 | 0o2000000, 0); // AF_INET; SOCK_STREAM, SOCK_CLOEXEC
  if (connect(fd, Uint8Array.of(2, 0, port >> 8, port & 255, 127, 0, 0, 1, ...new Array(8).fill(0)), 16) !== 0)
    throw new AtollError('unavailable', 'nothing listens');
  fcntl(fd, 4, 0o4000); // F_SETFL, O_NONBLOCK
  return fd;
}

/** A service that greets each client or breaks off, and its count of connections. */
function service(greeting = '', { breaks = false } = {}) {
  const state = { taken: 0, open: 0, got: '' };
  const listener = Bun.listen({
    ...{ hostname: '127.0.0.1', port: 0 },
    socket: {
      open(from) {
        state.taken++;
        state.open++;
        if (greeting) from.write(Buffer.from(greeting, 'latin1'));
        if (breaks) from.terminate();
      },
      data: (_, bytes) => void (state.got += bytes.toString('latin1')),
      close: () => void state.open--,
      error() {},
    },
  });
  undo.push(() => listener.stop(true));
  return { state, port: listener.port };
}
const settings = '\0\0\0\x04\0\0\0\0\0';

const pair = issueCertificate(makeAuthority('test', 1), ['a.test'], 1);
/** A service that speaks TLS, and the protocols it was offered. */
async function secured(protocols: string[], isHttp2 = false) {
  const agreed: (string | false | null)[] = [];
  const options = { key: pair.key, cert: pair.certificate, ALPNProtocols: protocols };
  const server = isHttp2 ? createSecureServer(options) : createServer(options);
  server.on('secureConnection', (from: TLSSocket) => {
    agreed.push(from.alpnProtocol);
    from.on('error', () => {});
  });
  server.on('tlsClientError', () => {});
  await new Promise<void>(resolve => (server as Http2SecureServer).listen(0, '127.0.0.1', () => resolve()));
  undo.push(() => void server.close());
  return { agreed, port: (server.address() as { port: number }).port };
}

type SceneOptions = { limits?: Partial<EdgeLimits>; dial?: (attempt: number) => Promise<number>; farEnd?: FarEnd };

/** The way to a service that answers on all ports of a sandbox. */
function scene(port: number, { limits: own = {}, dial, farEnd }: SceneOptions = {}) {
  const limits = { ...limitsWithin(1000), dialBackoffMs: [1, 1, 1], ...own };
  const counts = { dials: 0 };
  const way = {
    ...{ limits, upstreamHandlers: upstreamHandlers(silentLog), turns: new Http2Turns() },
    dial: async () => (counts.dials++, dial ? dial(counts.dials) : dialLoopback(port)),
    ...(farEnd && { farEnds: { take: () => farEnd } }),
  };
  const team = new Teams(limits).of('t');
  const traffic = new SandboxTraffic({ sandboxId: 's', executionId: 'e' }, limits, team, new KnownProtocols());
  const stop = new AbortController();
  const reaches = async (protocol?: Protocol, { tls = false, hasBody = false } = {}) =>
    ending(reachSandbox(way, traffic, 80, { tls, protocol, hasBody }, stop.signal));
  return { way, traffic, counts, stop, reaches };
}

async function ending(reaching: Promise<Upstream>): Promise<Upstream> {
  const upstream = await reaching;
  undo.push(() => upstream.terminate());
  return upstream;
}
const until = async (holds: () => boolean) => {
  while (!holds()) await Bun.sleep(1);
};

test('a connection is one of its port, and knows its far end', async () => {
  const { port } = service();
  const { reaches, traffic, counts } = scene(port, { farEnd: { wasReset: () => true, reset() {} } });
  const upstream = await reaches('http/1.1');
  expect([upstream.wasReset, upstream.protocol, traffic.poolOf(80).size, counts.dials]).toEqual([
    true,
    'http/1.1',
    1,
    1,
  ]);
  expect((await scene(port).reaches('http/1.1')).wasReset).toBe(false);
});

test('a port on which nothing listens yet is tried again, for a while', async () => {
  const { port } = service();
  const unavailable = new AtollError('unavailable', 'nothing listens');
  const late = scene(port, { dial: async attempt => (attempt < 4 ? Promise.reject(unavailable) : dialLoopback(port)) });
  await late.reaches('http/1.1');
  expect(late.counts.dials).toBe(4);
  const never = scene(port, { dial: () => Promise.reject(unavailable) });
  await expect(never.reaches('http/1.1')).rejects.toBe(unavailable);
  expect(never.counts.dials).toBe(4);
  for (const error of [new AtollError('not_found', 'gone'), new Error('broken')]) {
    const failing = scene(port, { dial: () => Promise.reject(error) });
    await expect(failing.reaches('http/1.1')).rejects.toBe(error);
    expect(failing.counts.dials).toBe(1);
  }
});

test('a dial that takes too long is given up, and what it brings is closed', async () => {
  const { port, state } = service();
  const { promise, resolve } = Promise.withResolvers<number>();
  const { reaches } = scene(port, { limits: { dialTimeoutMs: 5 }, dial: () => promise });
  await expect(reaches('http/1.1')).rejects.toMatchObject({ code: 'deadline_exceeded' });
  const fd = dialLoopback(port);
  await until(() => state.open === 1);
  resolve(fd);
  await until(() => state.open === 0);
  expect(() => fstatSync(fd)).toThrow('EBADF');
});

test('a departed client and a cut sandbox both end the wait', async () => {
  for (const end of ['client', 'sandbox'] as const) {
    const { reaches, stop, traffic } = scene(1, { dial: () => new Promise(() => {}) });
    const reaching = reaches('http/1.1');
    await Bun.sleep(0);
    if (end === 'client') stop.abort();
    else traffic.cut();
    await expect(reaching).rejects.toMatchObject({ code: 'canceled' });
  }
});

test('a service that may speak HTTP/2 alone has a moment to say so, where a request can’t be sent twice', async () => {
  const silent = scene(service().port);
  const upstream = await silent.reaches(undefined, { hasBody: true });
  expect([upstream.early, upstream.onEarly, upstream.protocol, silent.counts.dials]).toEqual([
    null,
    null,
    'http/1.1',
    1,
  ]);
  expect(silent.traffic.protocolOf(80)).toBeUndefined();
  const greets = service(settings);
  const spoken = scene(greets.port);
  expect((await spoken.reaches(undefined, { hasBody: true })).protocol).toBe('h2');
  expect([spoken.traffic.protocolOf(80), spoken.counts.dials, spoken.traffic.poolOf(80, true).size]).toEqual([
    'h2',
    2,
    1,
  ]);
  await until(() => greets.state.open === 1);
  expect(spoken.traffic.poolOf(80).size).toBe(0);
});

test('what a service has said counts, however late a busy edge reads it', async () => {
  const { port } = service(settings);
  const holdUp = () => {
    for (const until = performance.now() + 60; performance.now() < until;);
  };
  const dial = async () => {
    setTimeout(holdUp, 5);
    return dialLoopback(port);
  };
  for (let time = 0; time < 5; time++)
    expect((await scene(port, { dial }).reaches(undefined, { hasBody: true })).protocol).toBe('h2');
});

test('a service that says something else first, or breaks off, does not speak HTTP', async () => {
  for (const { port, state } of [service('220 mail'), service('', { breaks: true })]) {
    const { reaches, traffic } = scene(port);
    await expect(reaches(undefined, { hasBody: true })).rejects.toMatchObject({
      ...{ code: 'invalid', message: expect.stringContaining('does not speak HTTP') },
    });
    await until(() => state.open === 0);
    expect(traffic.connections).toBe(0);
  }
});

test('giving up during the wait for a greeting leaves no connection', async () => {
  const { port, state } = service();
  const { reaches, stop } = scene(port);
  const reaching = reaches(undefined, { hasBody: true });
  await until(() => state.open === 1);
  stop.abort();
  await expect(reaching).rejects.toMatchObject({ code: 'canceled' });
  await until(() => state.open === 0);
});

test('what is known to speak HTTP/2 is asked in it, and may speak first', async () => {
  const { port, state } = service(settings);
  const { reaches, traffic, counts } = scene(port);
  const upstream = await reaches('h2');
  expect([upstream.protocol, counts.dials, traffic.poolOf(80, true).size]).toEqual(['h2', 1, 1]);
  await until(() => state.got.startsWith('PRI * HTTP/2.0'));
});

test('TLS is spoken in the protocol that is asked for, whatever the certificate', async () => {
  const both = await secured(['h2', 'http/1.1']);
  expect((await scene(both.port).reaches('http/1.1', { tls: true })).protocol).toBe('http/1.1');
  expect((await scene(both.port).reaches('h2', { tls: true })).protocol).toBe('h2');
  // Unknown protocol: HTTP/1.1 is tried first, without waiting for a greeting.
  expect((await scene(both.port).reaches(undefined, { tls: true, hasBody: true })).protocol).toBe('http/1.1');
  await until(() => both.agreed.length === 3);
  expect(both.agreed).toEqual(['http/1.1', 'h2', 'http/1.1']);
});

test('a service that speaks HTTP/2 alone within TLS is found out', async () => {
  const { port } = await secured(['h2'], true);
  const { reaches, traffic, counts } = scene(port);
  expect((await reaches(undefined, { tls: true })).protocol).toBe('h2');
  expect([traffic.protocolOf(80), counts.dials]).toEqual(['h2', 2]);
});

test('a service that does not speak TLS, or not what is asked for within it, is told of', async () => {
  const plain = service('no TLS');
  const { reaches, traffic, counts } = scene(plain.port);
  for (const protocol of ['http/1.1', undefined] as const)
    await expect(reaches(protocol, { tls: true })).rejects.toMatchObject({
      ...{ code: 'invalid', message: 'The service does not speak TLS' },
    });
  // Reports the first error, even after a second try.
  expect([counts.dials, traffic.protocolOf(80)]).toEqual([3, undefined]);
  await until(() => plain.state.open === 0);
  const old = await secured(['http/1.1']);
  await expect(scene(old.port).reaches('h2', { tls: true })).rejects.toMatchObject({ code: 'invalid' });
});

test('a handshake that never ends is given up', async () => {
  const { port, state } = service();
  const { reaches } = scene(port, { limits: { handshakeTimeoutMs: 20 } });
  await expect(reaches('http/1.1', { tls: true })).rejects.toMatchObject({ code: 'deadline_exceeded' });
  await until(() => state.taken === 1 && state.open === 0);
});

test('a connection to a port itself keeps what its service says first', async () => {
  const { port } = service('220 mail');
  const { way, traffic, stop } = scene(port, { farEnd: { wasReset: () => true, reset() {} } });
  const upstream = await ending(reachPort(way, traffic, 80, stop.signal));
  await until(() => Buffer.concat(upstream.early ?? []).toString() === '220 mail');
  expect([upstream.wasReset, traffic.poolOf(80).size]).toEqual([true, 1]);
});

test('the API is reached at its socket, or is away', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-reach-'));
  undo.push(() => rmSync(folder, { recursive: true }));
  const apiSocketPath = join(folder, 'api.sock');
  const { way, traffic, stop } = scene(1);
  const api = { ...way, apiPool: traffic.poolOf(1), apiSocketPath };
  await expect(reachApi(api, stop.signal)).rejects.toMatchObject({
    ...{ code: 'unavailable', message: 'The API does not answer; try again in a moment' },
  });
  const listener = Bun.listen({ unix: apiSocketPath, socket: { data() {} } });
  undo.push(() => listener.stop(true));
  await ending(reachApi(api, stop.signal));
  expect(api.apiPool.size).toBe(1);
  await expect(reachApi(api, AbortSignal.abort())).rejects.toMatchObject({ code: 'canceled' });
});
