import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { issueCertificate, makeAuthority } from '../base/crypto/certificate.ts';
import { examineSettings } from './doctor.ts';
import { readSettings, type Settings } from './settings/settings.ts';

const dir = mkdtempSync(join(tmpdir(), 'atoll-doctor-'));
const dataDir = join(dir, 'data');

/** A name server that answers every question with an address, or refuses it. */
async function nameServer(isGood: boolean) {
  const socket = createSocket('udp4');
  socket.on('message', (asked, from) => {
    const answer = Buffer.concat([
      asked,
      isGood ? Buffer.from('c00c00010001000000050004c0000201', 'hex') : Buffer.of(),
    ]);
    answer.writeUInt16BE(isGood ? 0x8180 : 0x8185, 2);
    answer.writeUInt16BE(isGood ? 1 : 0, 6);
    // Drops the EDNS record that the question may carry.
    answer.writeUInt16BE(0, 10);
    const question = 12 + asked.subarray(12).indexOf(0) + 5;
    socket.send(Buffer.concat([answer.subarray(0, question), answer.subarray(asked.length)]), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { address: `127.0.0.1:${socket.address().port}`, close: () => socket.close() };
}
let servers: Awaited<ReturnType<typeof nameServer>>[] = [];
beforeAll(async () => void (servers = [await nameServer(true), await nameServer(false)]));
afterAll(() => {
  for (const { close } of servers) close();
  rmSync(dir, { recursive: true });
});

/** The finding of that name under these settings. */
async function finding(name: string, change: Partial<Settings> = {}) {
  const nameservers = [servers[0]?.address ?? ''];
  const found = await examineSettings({ ...readSettings({ ATOLL_DATA_DIR: dataDir }), nameservers, ...change });
  return found.find(one => one.name === name);
}

test('a new data directory has nothing in it yet, and is not made', async () => {
  expect(await finding('database')).toEqual({
    ...{ name: 'database', needed: true, status: 'ok', detail: 'SQLite, nothing in it yet' },
  });
  expect(existsSync(dataDir)).toBe(false);
});

test('a database that can’t be used is missing, with where to read on', async () => {
  const url = 'postgres://nobody@127.0.0.1:1/none?connect_timeout=1';
  expect(await finding('database', { databaseUrl: url })).toMatchObject({
    ...{ needed: true, status: 'missing', remedy: expect.stringContaining('docs/safety.md') },
  });
  writeFileSync(join(dir, 'file'), '');
  const below = await finding('database', { dataDir: join(dir, 'file/data') });
  expect(below).toMatchObject({ status: 'missing', detail: expect.stringContaining('ENOTDIR') });
  expect(below?.remedy).not.toContain('docs/safety.md');
});

test('a configured store is tried by writing and reading', async () => {
  expect(await finding('store')).toBeUndefined();
  const path = join(dir, 'store');
  mkdirSync(path);
  expect(await finding('store', { store: { kind: 'directory', path } })).toEqual({
    ...{ name: 'store', needed: false, status: 'ok', detail: `${path}: written, read and removed` },
  });
  expect(readdirSync(path, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())).toEqual([]);
  const bucket = { kind: 's3', bucket: 'b', prefix: '' } as const;
  expect(await finding('store', { store: bucket, storeSecretFile: join(dir, 'none') })).toMatchObject({
    ...{ status: 'limited', detail: expect.stringContaining('there is no secret in'), needed: false },
    remedy: expect.stringContaining('ATOLL_STORE'),
  });
});

test('a certificate is looked at where a port and files are set', async () => {
  expect((await finding('TLS certificate'))?.detail).toBe('no TLS port is set');
  expect((await finding('TLS certificate', { tlsPort: 443 }))?.detail).toBe(
    "signed by the installation's own authority",
  );
  const [tlsCertificate, tlsKey] = [join(dir, 'cert.pem'), join(dir, 'key.pem')];
  const files = { tlsPort: 443, tlsCertificate, tlsKey };
  expect(await finding('TLS certificate', files)).toMatchObject({
    ...{ status: 'missing', needed: true, remedy: expect.stringContaining('ATOLL_TLS_CERT') },
  });
  const { certificate, key } = issueCertificate(makeAuthority('test', 2), ['localhost'], 2);
  writeFileSync(tlsCertificate, certificate);
  writeFileSync(tlsKey, key);
  expect(await finding('TLS certificate', files)).toEqual({
    ...{ name: 'TLS certificate', needed: true, status: 'ok', detail: tlsCertificate },
  });
});

test('name servers are asked, and those that resolve nothing are named', async () => {
  const [good = '', bad = ''] = servers.map(({ address }) => address);
  expect(await finding('name servers', { nameservers: [good] })).toEqual({
    ...{ name: 'name servers', needed: false, status: 'ok', detail: `${good} answer` },
  });
  expect(await finding('name servers', { nameservers: [good, bad] })).toMatchObject({
    ...{ status: 'limited', detail: `no answer from ${bad}`, remedy: expect.stringContaining('ATOLL_NAMESERVERS') },
  });
  expect((await finding('name servers', { nameservers: [bad] }))?.detail).toBe(
    `no answer from ${bad}: sandboxes can look up no name`,
  );
});
