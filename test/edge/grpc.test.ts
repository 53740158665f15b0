import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { localAuthority } from '../../src/supervisor/certificates/local-authority.ts';
import { type Fixture, startFixture } from './support/fixture.ts';
import { askGrpc, type GrpcServer, startGrpcServer } from './support/grpc.ts';

// gRPC as people use it: the published client and server of Node.js, with the edge between them.

setDefaultTimeout(60_000);
const authority = '80-one.localhost';
const hosts = [
  '80-one',
  '81-one',
  '82-one',
  '99999-one',
  '80-gone',
  '80-closed',
  '80-ending',
  '443-tls',
  '444-tls',
].map(name => `${name}.localhost`);
let folder: string;
let fixture: Fixture;
let server: GrpcServer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'edge-grpc-'));
  const certificate = localAuthority(folder, ['localhost', ...hosts]);
  fixture = startFixture({ tls: { hostname: '127.0.0.1', port: 0, certificate } });
  server = await startGrpcServer();
  fixture.sandbox('one');
  fixture.mapPort(80, server.port);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await fixture[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const overTls = (name = '', to = authority) =>
  askGrpc([String(fixture.edge.tlsPort), join(folder, 'ca.pem'), to, name]);

test('calls of every kind pass, with what is before and behind them', async () => {
  const outcomes = await overTls();
  const fine = { code: 0, details: 'OK' };
  expect(outcomes['unary']).toMatchObject({
    ...fine,
    answer: 'hello',
    initial: { 'x-seen': 'mine', 'x-forwarded': 'https' },
    trailers: { 'x-behind': 'yes' },
  });
  expect(outcomes['empty']).toMatchObject({ ...fine, answer: '' });
  expect(outcomes['serverStream']).toMatchObject({ ...fine, count: 1000, last: '999' });
  expect(outcomes['clientStream']).toMatchObject({ ...fine, answer: String((99 * 100 * 100) / 2) });
  expect(outcomes['bidirectional']).toMatchObject({ ...fine, count: 50, last: '49!' });
  const detail = { 'x-detail': 'why' };
  expect(outcomes['error']).toMatchObject({ code: 5, details: 'näh % nothing', trailers: detail });
  expect(outcomes['errorBehindMessages']).toMatchObject({ code: 10, messages: ['one'], trailers: detail });
  expect(outcomes['errorBeforeTheEnd']).toMatchObject({ code: 3, details: 'enough' });
  expect(outcomes['unknownMethod']).toMatchObject({ code: 12 });
  expect(outcomes['large']).toMatchObject({ ...fine, length: 20 * 1024 * 1024 });
  expect(outcomes['cancel']).toEqual({ name: 'cancel', code: 1, after: 1 });
  expect(outcomes['deadline']).toEqual({ name: 'deadline', code: 4, after: 1 });
  expect(outcomes['many']).toMatchObject({ code: 0, right: 200 });
  expect(fixture.complaints).toEqual([]);
});

test('over HTTP/2 in the clear, by who knows that it is spoken', async () => {
  const { unary, bidirectional } = await askGrpc([String(fixture.port), '', authority, 'unary bidirectional']);
  expect(unary).toMatchObject({ code: 0, answer: 'hello', initial: { 'x-forwarded': 'http' } });
  expect(bidirectional).toMatchObject({ code: 0, count: 50 });
});

test('a service that speaks TLS is asked in HTTP/2 within it', async () => {
  await using secure = await startGrpcServer(join(folder, 'server-key.pem'), join(folder, 'server.pem'));
  fixture.sandbox('tls', { ingress: { httpsPorts: [443] } });
  fixture.mapPort(443, secure.port);
  const { unary, large } = await overTls('unary large', '443-tls.localhost');
  expect(unary).toMatchObject({ code: 0, answer: 'hello' });
  expect(large).toMatchObject({ code: 0, length: 20 * 1024 * 1024 });
});

test('a connection to a service that speaks no HTTP/2 within TLS is closed', async () => {
  const [key, cert] = ['server-key.pem', 'server.pem'].map(name => readFileSync(join(folder, name)));
  const closed = Promise.withResolvers<void>();
  using service = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    tls: { key, cert },
    socket: { data() {}, close: () => closed.resolve() },
  });
  fixture.sandbox('tls', { ingress: { httpsPorts: [444] } });
  fixture.mapPort(444, service.port);
  const { unary } = await overTls('unary', '444-tls.localhost');
  expect(unary).toMatchObject({ code: 14 });
  await closed.promise;
});

test('whoever has no service to ask gets the reason as gRPC has it', async () => {
  const { unary: closed } = await overTls('unary', '81-one.localhost');
  expect(closed).toMatchObject({ code: 14, details: 'The sandbox is running but port is not open' });
  const { unary: missing } = await overTls('unary', '80-gone.localhost');
  expect(missing).toMatchObject({ code: 14, details: 'The sandbox was not found' });
  fixture.sandbox('closed', { ingress: { trafficAccessToken: 'secret' } });
  const { unary: forbidden } = await overTls('unary', '80-closed.localhost');
  expect(forbidden).toMatchObject({ code: 7, details: expect.stringContaining('e2b-traffic-access-token') });
  const { unary: malformed } = await overTls('unary', '99999-one.localhost');
  expect(malformed?.code).toBe(3);
  using old = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('no') });
  fixture.mapPort(82, old.port ?? 0);
  const { unary: http1 } = await overTls('unary', '82-one.localhost');
  expect(http1).toMatchObject({ code: 14, details: expect.stringContaining('The service on port 82') });
});

test('the end of a sandbox ends its calls, and leaves nothing', async () => {
  fixture.sandbox('ending');
  const hanging = overTls('hangForGood', '80-ending.localhost');
  while (fixture.edge.stats().inSandboxes === 0) await Bun.sleep(5);
  fixture.remove('ending');
  expect((await hanging)['hangForGood']?.code).not.toBe(0);
  while (fixture.edge.stats().inSandboxes > 0) await Bun.sleep(5);
});

/** Waits until a number has stopped growing. */
async function still(read: () => number): Promise<number> {
  for (let before = -1; before !== read();) {
    before = read();
    await Bun.sleep(300);
  }
  return read();
}

test('who does not read makes the other side wait, in either direction', async () => {
  const block = Buffer.alloc(65_536);
  let sent = 0;
  // Streams whose connection has ended may accept data without end.
  let goesOn = true;
  const service = createServer();
  service.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {});
    stream.pause();
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    const go = (): void => {
      for (let flows = true; flows && goesOn; sent += block.length) flows = stream.write(block);
      stream.once('drain', go);
    };
    go();
  });
  await new Promise<void>(resolve => service.listen(0, '127.0.0.1', resolve));
  fixture.mapPort(83, (service.address() as AddressInfo).port);
  const session = connect(fixture.url);
  const grpc = { ':method': 'POST', ':path': '/a/B', te: 'trailers', 'content-type': 'application/grpc' };
  const stream = session.request({ ...grpc, ':authority': '83-one.localhost' });
  stream.on('error', () => {});
  await new Promise(resolve => stream.once('response', resolve));
  stream.pause();
  let taken = 0;
  const give = (): void => {
    for (let flows = true; flows && goesOn; taken += block.length) flows = stream.write(block);
    stream.once('drain', give);
  };
  give();
  // What the kernel, both libraries and the edge hold.
  expect(await still(() => sent)).toBeLessThan(24_000_000);
  expect(await still(() => taken)).toBeLessThan(24_000_000);
  goesOn = false;
  session.destroy();
  while (fixture.edge.stats().inSandboxes > 0) await Bun.sleep(5);
  service.close();
}, 30_000);
