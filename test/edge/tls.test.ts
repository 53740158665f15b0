import { expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type PeerCertificate } from 'node:tls';
import { issueCertificate, makeAuthority } from '../../src/base/crypto/certificate.ts';
import { createLog } from '../../src/base/telemetry/log.ts';
import { defaultLimits } from '../../src/edge/limits.ts';
import { certificateFromFiles } from '../../src/supervisor/certificates/files.ts';
import { localAuthority } from '../../src/supervisor/certificates/local-authority.ts';
import { startFixture, to } from './support/fixture.ts';
import { RawSocket, startRawServer } from './support/raw-socket.ts';

const quiet = createLog('error', () => {});

function tempFolder() {
  const path = mkdtempSync(join(tmpdir(), 'edge-tls-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

const local = (folder: string) => localAuthority(folder, ['localhost', '*.box.localhost', '127.0.0.1']);

function startSecure(folder: string) {
  return startFixture({ tls: { hostname: '127.0.0.1', port: 0, certificate: local(folder) } });
}

/** The certificate that the port presents. */
async function shown(port: number, servername = 'localhost'): Promise<PeerCertificate> {
  const socket = connect({ host: '127.0.0.1', port, servername, rejectUnauthorized: false });
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
  const certificate = socket.getPeerCertificate();
  socket.destroy();
  return certificate;
}

test('who trusts the local authority reaches API and sandboxes over TLS', async () => {
  using folder = tempFolder();
  await using fixture = startSecure(folder.path);
  await using server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: request => Response.json(request.headers) });
  fixture.sandbox('one');
  const ca = readFileSync(join(folder.path, 'ca.pem'), 'utf8');
  const url = `https://localhost:${fixture.edge.tlsPort}`;
  expect(await (await fetch(url, { tls: { ca } })).json()).toMatchObject({ api: '/' });
  const headers = await (await fetch(url, { tls: { ca }, headers: to('one', Number(server.port)) })).json();
  expect(headers).toMatchObject({ 'x-forwarded-proto': 'https', 'x-forwarded-for': '127.0.0.1' });
  expect(await fetch(url).catch(() => 'untrusted')).toBe('untrusted');
});

test('the authority is made once, its keys are secret, and its certificate is renewed for other names', async () => {
  using folder = tempFolder();
  const first = startSecure(folder.path);
  const before = await shown(first.edge.tlsPort as number);
  await first[Symbol.asyncDispose]();
  for (const file of ['ca-key.pem', 'server-key.pem'])
    expect(statSync(join(folder.path, file)).mode & 0o777).toBe(0o600);
  const authority = readFileSync(join(folder.path, 'ca.pem'), 'utf8');
  await using second = startSecure(folder.path);
  expect((await shown(second.edge.tlsPort as number)).fingerprint256).toBe(before.fingerprint256);
  await using third = startFixture({
    tls: { hostname: '127.0.0.1', port: 0, certificate: localAuthority(folder.path, ['other.example']) },
  });
  const other = await shown(third.edge.tlsPort as number);
  expect(other.subjectaltname).toBe('DNS:other.example');
  expect(readFileSync(join(folder.path, 'ca.pem'), 'utf8')).toBe(authority);
});

test('a changed certificate is shown to new connections, and what does not fit is left aside', async () => {
  using folder = tempFolder();
  const authority = makeAuthority('Test', 10);
  const certFile = join(folder.path, 'cert.pem');
  const keyFile = join(folder.path, 'key.pem');
  const put = (path: string, text: string) => {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  };
  const [first, second] = [
    issueCertificate(authority, ['first.example'], 5),
    issueCertificate(authority, ['second.example'], 5),
  ];
  put(certFile, first.certificate);
  put(keyFile, first.key);
  const certificate = certificateFromFiles({ certFile, keyFile }, quiet);
  await using fixture = startFixture({ tls: { hostname: '127.0.0.1', port: 0, certificate } });
  const port = fixture.edge.tlsPort as number;
  expect((await shown(port)).subjectaltname).toBe('DNS:first.example');
  const kept = await RawSocket.connect(port, { rejectUnauthorized: false });
  put(certFile, second.certificate);
  certificate.refresh();
  expect((await shown(port)).subjectaltname).toBe('DNS:first.example');
  put(keyFile, second.key);
  certificate.refresh();
  expect((await shown(port)).subjectaltname).toBe('DNS:second.example');
  kept.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await kept.expect('200 OK');
  kept.close();
});

test('files that can’t be used are refused at start, with their names', () => {
  const files = { certFile: '/nowhere/cert.pem', keyFile: '/nowhere/key.pem' };
  expect(() => certificateFromFiles(files, quiet)).toThrow('/nowhere/cert.pem');
});

test('streams, resets and half-closes are the same over TLS', async () => {
  using folder = tempFolder();
  await using fixture = startSecure(folder.path);
  using server = startRawServer();
  fixture.sandbox('one');
  fixture.mapPort(80, server.port);
  const get = 'GET / HTTP/1.1\r\nHost: 80-one.box.localhost\r\n\r\n';
  const open = () => RawSocket.connect(fixture.edge.tlsPort as number, { rejectUnauthorized: false });
  const client = await open();
  client.send(get);
  const upstream = await server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n');
  await client.expect('one');
  fixture.remove('one');
  expect(await client.over()).toBe('reset');
  expect(await upstream.over()).toBe('reset');
  fixture.sandbox('one');
  const leaving = await open();
  leaving.send(get);
  const left = await server.accept();
  await left.expect('\r\n\r\n');
  leaving.reset();
  expect(await left.over()).toBe('reset');
  const closing = await open();
  closing.send(get.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
  const last = await server.accept();
  await last.expect('\r\n\r\n');
  last.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  await closing.expect('ok');
  await closing.until(raw => raw.ended || raw.end !== undefined);
});

test('a service that speaks TLS inside the sandbox is reached on its ports, whatever its certificate', async () => {
  await using fixture = startFixture();
  const pair = issueCertificate(makeAuthority('Nobody', 5), ['elsewhere.example'], 5);
  const tls = { cert: pair.certificate, key: pair.key };
  await using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    tls,
    fetch: async request => new Response(`over TLS ${await request.text()}`),
  });
  const port = Number(server.port);
  fixture.sandbox('one', { ingress: { httpsPorts: [port, 81] } });
  for (let i = 0; i < 3; i++) {
    const response = await fetch(fixture.url, { method: 'POST', body: 'x'.repeat(300_000), headers: to('one', port) });
    expect((await response.text()).length).toBe(300_009);
  }
  expect(fixture.dials.length).toBe(1);
  await using plain = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('plain') });
  fixture.mapPort(81, Number(plain.port));
  expect((await fetch(fixture.url, { headers: to('one', 81) })).status).toBe(503);
});

test('nothing older than TLS 1.2 is spoken', async () => {
  using folder = tempFolder();
  await using fixture = startSecure(folder.path);
  const attempt = (maxVersion: 'TLSv1.1' | 'TLSv1.2') =>
    new Promise<string>(resolve => {
      const socket = connect({
        host: '127.0.0.1',
        port: fixture.edge.tlsPort as number,
        rejectUnauthorized: false,
        minVersion: 'TLSv1',
        maxVersion,
      });
      socket
        .once('secureConnect', () => resolve(socket.getProtocol() ?? 'none'))
        .once('error', () => resolve('refused'));
    });
  expect(await attempt('TLSv1.1')).toBe('refused');
  expect(await attempt('TLSv1.2')).toBe('TLSv1.2');
});

test('a service that never ends a handshake keeps no connection, however its request ends', async () => {
  await using fixture = startFixture({ limits: { ...defaultLimits, handshakeTimeoutMs: 100 } });
  using silent = startRawServer();
  fixture.sandbox('one', { ingress: { httpsPorts: [80] } });
  fixture.mapPort(80, silent.port);
  const ask = async () => {
    const client = await RawSocket.connect(fixture.port);
    client.send('GET / HTTP/1.1\r\nHost: 80-one.localhost\r\n\r\n');
    const service = await silent.accept();
    await service.until(raw => raw.received.length > 0);
    return { client, service };
  };
  const waiting = await ask();
  await waiting.client.expect(' 504 ');
  expect(await waiting.service.over()).toBe('reset');
  waiting.client.close();
  const leaving = await ask();
  leaving.client.reset();
  expect(await leaving.service.over()).toBe('reset');
  const cut = await ask();
  fixture.remove('one');
  expect(await cut.service.over()).toBe('reset');
  cut.client.close();
});

test('a certificate that can not be shown costs connections, and not the edge', async () => {
  const unusable = { current: { certificate: 'none', key: 'none' } };
  await using fixture = startFixture({ tls: { hostname: '127.0.0.1', port: 0, certificate: unusable } });
  const client = await RawSocket.connect(fixture.edge.tlsPort as number);
  await client.over();
  expect(fixture.complaints.splice(0)).toEqual([expect.stringContaining('client handler failed')]);
  expect((await fetch(fixture.url)).status).toBe(200);
});
