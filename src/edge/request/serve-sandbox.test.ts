import { dlopen } from 'bun:ffi';
import { afterEach, expect, test } from 'bun:test';
import { silentLog } from '../../base/telemetry/log.ts';
import { RequestHead } from '../../http1/request-head.ts';
import { ResponseHead } from '../../http1/response-head.ts';
import { agentPort, fileMetadataHeader, onlyRunningHeader } from '../../protocol/agent.ts';
import type { Ingress, Route } from '../../protocol/directory.ts';
import { ClientTable } from '../clients/client-table.ts';
import { ClientConnection } from '../connection/client-connection.ts';
import type { ConnectionContext, SandboxWay } from '../context.ts';
import { LargeHeads } from '../clients/large-heads.ts';
import { WaitingBytes } from '../waiting-bytes.ts';
import { Http2Turns } from '../http2-turns.ts';
import { limitsWithin } from '../limits.ts';
import { KnownProtocols } from '../upstream/known-protocols.ts';
import { Teams } from '../upstream/team-traffic.ts';
import { upstreamHandlers } from '../upstream/upstream.ts';
import { type NamedPort, serveSandbox } from './serve-sandbox.ts';

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0).reverse()) step();
});
const until = async (holds: () => boolean) => {
  while (!holds()) await Bun.sleep(1);
};

/** A connected descriptor, as the node passes it. */
const { socket, connect, fcntl } = dlopen('libc.so.6', {
  socket: { args: ['int', 'int', 'int'], returns: 'int' },
  connect: { args: ['int', 'ptr', 'u32'], returns: 'int' },
  fcntl: { args: ['int', 'int', 'int'], returns: 'int' },
}).symbols;
function dialLoopback(port: number): number {
  const fd = socket(2, 1 | 0o2000000, 0); // AF_INET; SOCK_STREAM, SOCK_CLOEXEC
  connect(fd, Uint8Array.of(2, 0, port >> 8, port & 255, 127, 0, 0, 1, ...new Array(8).fill(0)), 16);
  fcntl(fd, 4, 0o4000); // F_SETFL, O_NONBLOCK
  return fd;
}

const route = (state: Route['state'] = 'running', more: Partial<Ingress> = {}): Route => ({
  ...{ sandboxId: 's', teamId: 't', executionId: 'e', nodeId: 'n', state },
  ingress: {
    ...{ trafficAccessToken: null, accessToken: null, maskRequestHost: null, httpsPorts: [], autoResume: false },
    ...more,
  },
});

type SceneOptions = { found?: Route | Promise<Route | undefined>; to?: Partial<NamedPort>; dial?: SandboxWay['dial'] };

/** A client whose requests go to a port of a sandbox, served by the test. */
function scene({ found = route(), to = {}, dial }: SceneOptions = {}) {
  const service = { taken: 0, open: 0, got: '' };
  const listener = Bun.listen({
    ...{ hostname: '127.0.0.1', port: 0 },
    socket: {
      open: () => void (service.taken++, service.open++),
      data(from, bytes) {
        service.got += bytes.toString('latin1');
        if (service.got.endsWith('\r\n\r\n')) from.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      },
      close: () => void service.open--,
      error() {},
    },
  });
  undo.push(() => listener.stop(true));
  const limits = { ...limitsWithin(1000), dialBackoffMs: [] };
  const clock = { nowMs: 1_000_000 };
  const context: ConnectionContext = {
    ...{ limits, log: silentLog, trustForwardedHeaders: false, clock },
    requestHead: new RequestHead(limits.headerLinesMax),
    ...{
      turns: new Http2Turns(),
      largeHeads: new LargeHeads(limits),
      waiting: new WaitingBytes(limits.waitingBytesMax),
    },
    responseHead: new ResponseHead(limits.headerLinesMax),
    ...{ scratch: Buffer.allocUnsafe(1 << 20), clients: new Set(), stopping: false },
  };
  const counts = { wakes: 0, dials: 0 };
  const teams = new Teams(limits);
  const way: SandboxWay = {
    ...{ limits, log: silentLog, clock, upstreamHandlers: upstreamHandlers(silentLog) },
    directory: { find: () => found, running: () => [], wake: async () => (counts.wakes++, route()) },
    dial: async (...asked) => (counts.dials++, dial ? dial(...asked) : dialLoopback(listener.port)),
    ...{ traffic: new Map(), teams, protocols: new KnownProtocols(), turns: new Http2Turns() },
  };
  undo.push(() => way.traffic.get('s')?.cut());
  const table = new ClientTable(limits, false);
  const seat = table.admit('127.0.0.1', 0)!;
  const it = { text: '', isClosed: false };
  const socketOf = {
    ...{ remoteAddress: '127.0.0.1', bytesWritten: 0, pause() {}, resume() {}, shutdown() {} },
    write(bytes: Uint8Array, start = 0, length = bytes.length - start) {
      it.text += Buffer.from(bytes.subarray(start, start + length)).toString('latin1');
      return length;
    },
    close: () => void (it.isClosed = true),
    terminate: () => void (it.isClosed = true),
  };
  const port = { kind: 'sandbox', sandboxId: 's', port: 8080, by: 'host', ...to } as NamedPort;
  const attempt = { fresh: false, again() {} } as unknown as Parameters<typeof serveSandbox>[4];
  const serve = (of: ClientConnection, head: RequestHead) => serveSandbox(way, of, head, port, attempt);
  const client = new ClientConnection(context, socketOf, false, serve as never, seat.origin, seat);
  const asks = (...lines: string[]) => client.received(Buffer.from([...lines, '', ''].join('\r\n')));
  const took = () => {
    const { text } = it;
    it.text = '';
    return text;
  };
  return { asks, took, it, client, service, counts, port: listener.port, inFlight: () => teams.inFlight };
}
const get = (path = '/') => [`GET ${path} HTTP/1.1`, 'Host: a'];
const answered = (at: ReturnType<typeof scene>) => until(() => /\r\n\r\n./.test(at.it.text));

test('a request goes into the sandbox, and the next one by the same connection', async () => {
  const at = scene();
  for (const path of ['/1', '/2']) {
    at.asks(...get(path));
    await answered(at);
    expect(at.took()).toStartWith('HTTP/1.1 200 OK');
    expect(at.inFlight()).toBe(0);
  }
  expect([at.service.taken, at.counts.dials]).toEqual([1, 1]);
  expect(at.service.got).toContain('GET /2 HTTP/1.1\r\nHost: a\r\n');
});

test('the sandbox sees the host that it wants to, and its agent the client’s', async () => {
  const masked = route('running', { maskRequestHost: 'box-${PORT}.test' });
  const at = scene({ found: masked });
  at.asks(...get());
  await answered(at);
  expect(at.service.got).toContain('Host: box-8080.test\r\n');
  const agent = scene({ found: masked, to: { port: agentPort } });
  const name = `${fileMetadataHeader}a`;
  agent.asks('POST /files HTTP/1.1', 'Host: a', `${name}: 1`, `${name}: 2`, 'Content-Length: 0');
  await answered(agent);
  expect(agent.service.got).toContain('Host: a\r\n');
  expect(agent.service.got.split(`${name}: `)).toHaveLength(2);
});

test('paths of the agent that are the platform’s are not served', async () => {
  const at = scene({ to: { port: agentPort } });
  at.asks('POST /init HTTP/1.1', 'Host: a', 'Content-Length: 0');
  expect([at.took().slice(0, 12), at.counts.dials]).toEqual(['HTTP/1.1 404', 0]);
  const other = scene();
  other.asks('POST /init HTTP/1.1', 'Host: a', 'Content-Length: 0');
  await answered(other);
  expect(other.took()).toStartWith('HTTP/1.1 200');
});

test('a sandbox that is not found, or not to be used, is told of', async () => {
  const none = scene({ found: Promise.resolve(undefined) });
  none.asks(...get());
  await answered(none);
  expect([none.took().slice(0, 12), none.counts.dials]).toEqual(['HTTP/1.1 502', 0]);
  const closed = scene({ found: route('running', { trafficAccessToken: 'a' }) });
  closed.asks(...get());
  expect(closed.took()).toStartWith('HTTP/1.1 403');
});

test('asking whether a sandbox runs wakes none', async () => {
  const found = route('paused', { autoResume: true });
  for (const [lines, port, wakes] of [
    [get('/health'), agentPort, 0],
    [[...get('/files'), `${onlyRunningHeader}: 1`], agentPort, 0],
    [get('/files'), agentPort, 1],
    [get('/health'), 8080, 1],
  ] as const) {
    const at = scene({ found, to: { port } });
    at.asks(...lines);
    await answered(at);
    expect([lines[0], at.took().slice(9, 12), at.counts.wakes]).toEqual([lines[0] ?? '', wakes ? '200' : '502', wakes]);
  }
});

test('a client that leaves while the connection is made leaves none', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const at = scene({ dial: async () => (await promise, dialLoopback(at.port)) });
  at.asks(...get());
  await until(() => at.counts.dials === 1);
  expect(at.inFlight()).toBe(1);
  at.client.wasClosed(undefined);
  resolve();
  await until(() => at.inFlight() === 0 && at.service.taken === 1 && at.service.open === 0);
  expect(at.it.text).toBe('');
});

test('trouble on the way is answered', async () => {
  const at = scene({ dial: () => Promise.reject(new Error('broken')) });
  at.asks(...get());
  await answered(at);
  expect([at.took().slice(0, 12), at.inFlight()]).toEqual(['HTTP/1.1 503', 0]);
});

test('a call of gRPC asks its service in HTTP/2, and the agent in HTTP/1.1', async () => {
  for (const [port, begin] of [
    [8080, 'PRI * HTTP/2.0'],
    [agentPort, 'POST / HTTP/1.1'],
  ] as const) {
    const at = scene({ to: { port } });
    at.client.isGrpc = true;
    at.asks('POST / HTTP/1.1', 'Host: a', 'Content-Length: 0');
    await until(() => at.service.got.length > 10);
    expect(at.service.got).toStartWith(begin);
  }
});
