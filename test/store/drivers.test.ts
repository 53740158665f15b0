import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { checkStore } from '../../src/blob/check.ts';
import { directoryStore, prepareStoreDirectory } from '../../src/blob/directory.ts';
import { s3Store } from '../../src/blob/s3.ts';
import { receiveParts, sendParts } from '../../src/gate/parts.ts';
import { type BlobStore, partBytes } from '../../src/protocol/blob.ts';
import { type S3Server, startS3, withoutS3 } from '../support/s3-server.ts';
import { testUnless } from '../support/skip.ts';

// The stores of a cluster: a directory, and a real S3 server that checks signatures.

setDefaultTimeout(20 * 60_000); // the S3 server may have to be built
const s3Test = testUnless(withoutS3());
let s3: S3Server;
const folders: string[] = [];

beforeAll(async () => {
  if (withoutS3() === undefined) s3 = await startS3();
});
afterAll(async () => {
  await s3?.[Symbol.asyncDispose]();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function directory(): BlobStore {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-store-'));
  folders.push(folder);
  return directoryStore(prepareStoreDirectory(folder), folder);
}
const bucket = (changed: Partial<Parameters<typeof s3Store>[0]> = {}) =>
  s3Store({ ...s3, prefix: 'some/prefix', region: 'us-east-1', ...changed });

async function keysOf(store: BlobStore, prefix: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list(prefix)) keys.push(key);
  return keys.toSorted();
}

const stores: [string, typeof test | typeof s3Test, () => BlobStore][] = [
  ['a directory', test, directory],
  ['S3', s3Test, bucket],
];

for (const [name, storeTest, open] of stores)
  describe(name, () => {
    storeTest('objects are written whole, read, listed and removed', async () => {
      const store = open();
      await checkStore(store);
      const content = crypto.getRandomValues(new Uint8Array(65_536));
      await store.put('one/blobs/a/00000', content);
      await store.put('one/blobs/a/00001', new Uint8Array());
      await store.put('one/blobs/b/00000', content.subarray(0, 5));
      await store.put('two/blobs/c/00000', content);
      expect(Buffer.compare(await store.get('one/blobs/a/00000'), content)).toBe(0);
      expect((await store.get('one/blobs/a/00001')).length).toBe(0);
      expect(await store.head('one/blobs/b/00000')).toBe(5);
      expect(await store.head('one/blobs/b')).toBe(null);
      expect(await store.head('nothing')).toBe(null);
      expect(await keysOf(store, 'one/blobs/')).toEqual([
        'one/blobs/a/00000',
        'one/blobs/a/00001',
        'one/blobs/b/00000',
      ]);
      await store.put('one/blobs/b/00000', content.subarray(0, 7));
      expect(await store.head('one/blobs/b/00000')).toBe(7);
      for (let twice = 0; twice < 2; twice++) await store.remove('one/blobs/a/00000');
      await expect(store.get('one/blobs/a/00000')).rejects.toMatchObject({ code: 'not_found' });
      expect(await keysOf(store, 'one/blobs/')).toEqual(['one/blobs/a/00001', 'one/blobs/b/00000']);
    });
  });

test('a directory that is gone is no empty one, and one that may not be written says so', async () => {
  const store = directory();
  const [folder = ''] = folders.slice(-1);
  rmSync(folder, { recursive: true });
  await expect(store.put('a/b', new Uint8Array())).rejects.toMatchObject({ code: 'unavailable' });
  await expect(store.head('a/b')).rejects.toMatchObject({ code: 'unavailable' });
  await expect(checkStore(store)).rejects.toThrow(folder);
  for (const wrong of ['../x', 'a//b', '/etc/passwd', 'a/../../b', '.hidden', ''])
    expect(() => store.get(wrong)).toThrow('is not a key');
});

test('the folder of a store is closed, and open within', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-store-'));
  folders.push(folder);
  chmodSync(folder, 0o700);
  const mode = (path: string) => statSync(path).mode & 0o777;
  expect([mode(folder), mode(prepareStoreDirectory(folder))]).toEqual([0o700, 0o777]);
});

s3Test('wrong keys and a wrong bucket are told apart, and no message holds a secret', async () => {
  const cases: [Partial<Parameters<typeof s3Store>[0]>, RegExp][] = [
    [{ secret: 'wrong-secret' }, /refuses the keys \(SignatureDoesNotMatch\)/],
    [{ keyId: 'nobody' }, /refuses the keys/],
    [{ bucket: 'not-there' }, /has no such bucket/],
  ];
  for (const [changed, message] of cases) {
    const store = bucket(changed);
    const error = await checkStore(store).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'precondition', detail: 'store_refused' });
    expect(String(error)).toMatch(message);
    for (const secret of ['wrong-secret', s3.secret, 'X-Amz'])
      expect(JSON.stringify([String(error), Bun.inspect(error)])).not.toContain(secret);
    await expect(store.head('x')).rejects.toMatchObject({ code: 'precondition' });
  }
  const away = bucket({ endpoint: 'http://127.0.0.1:9' });
  await expect(away.put('a', new Uint8Array(1))).rejects.toMatchObject({ code: 'unavailable' });
});

test('a store that is full says so, and what was there stays', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-store-'));
  const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]);
  expect(mounted.exitCode).toBe(0);
  try {
    const full = directoryStore(prepareStoreDirectory(folder), folder);
    await full.put('a/small', new Uint8Array(1000));
    await expect(full.put('a/large', new Uint8Array(2 << 20))).rejects.toMatchObject({
      code: 'no_space',
      message: expect.stringContaining('is full (ENOSPC)'),
    });
    expect(await keysOf(full, 'a/')).toEqual(['a/small']);
    expect((await full.get('a/small')).length).toBe(1000);
  } finally {
    Bun.spawnSync(['umount', folder]);
    rmSync(folder, { recursive: true, force: true });
  }
  // As S3 servers say it, to control and to a machine with a URL.
  const answer = '<Error><Code>QuotaExceeded</Code><Message>no more</Message></Error>';
  await using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response(answer, { status: 507 }),
  });
  const remote = s3Store({
    endpoint: server.url.origin,
    bucket: 'b',
    keyId: 'k',
    secret: 's'.repeat(20),
    prefix: 'p',
    region: 'us-east-1',
  });
  await expect(remote.put('a', new Uint8Array(1))).rejects.toMatchObject({ code: 'no_space' });
  const url = remote.presign?.('a', 'PUT', 60) ?? '';
  await expect(sendParts(stream(new Uint8Array(5), 5), [url])).rejects.toMatchObject({ code: 'no_space' });
});

s3Test('a store that is away is told so, and no URL', async () => {
  const away = bucket({ endpoint: 'http://127.0.0.1:9' });
  const error = await sendParts(stream(new Uint8Array(5), 5), [away.presign?.('a', 'PUT', 60) ?? '']).catch(
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ code: 'unavailable', detail: 'store_unavailable' });
  expect(Bun.inspect(error)).not.toContain('X-Amz');
});

async function* stream(bytes: Uint8Array, piece: number) {
  for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece);
}

s3Test('a machine sends and gets parts by signed URLs, and one of another signature is refused', async () => {
  const store = bucket();
  const { presign } = store;
  if (!presign) throw new Error('there are no signed URLs');
  const content = new Uint8Array(partBytes * 2 + 1000);
  for (let at = 0; at < content.length; at += 65_536)
    crypto.getRandomValues(content.subarray(at, Math.min(at + 65_536, content.length)));
  const keys = ['00000', '00001', '00002'].map(part => `one/blobs/parts/${part}`);
  const urls = (method: 'GET' | 'PUT') => keys.map(key => presign(key, method, 60));
  await sendParts(stream(content, 100_000), urls('PUT'));
  const got: Uint8Array[] = [];
  for await (const part of receiveParts(urls('GET'))) got.push(part);
  expect(Buffer.compare(Buffer.concat(got), content)).toBe(0);
  await expect(sendParts(stream(content, 100_000), urls('PUT').slice(1))).rejects.toThrow('more to send');
  await expect(sendParts(stream(content.subarray(0, 10), 10), urls('PUT'))).rejects.toThrow('less to send');
  const forged = urls('PUT').map(url => url.replace(/(X-Amz-Signature=)..../, '$10000'));
  const refused = await sendParts(stream(content, 100_000), forged).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: 'precondition', detail: 'store_refused' });
  expect(String(refused)).not.toContain('X-Amz');
  // A URL for reading one object permits neither writing it nor reading another.
  const [read = ''] = urls('GET');
  expect((await fetch(read, { method: 'PUT', body: 'x' })).status).toBe(403);
  expect((await fetch(read.replace('00000?', '00001?'))).status).toBe(403);
});

/** A line that breaks the first connection in the middle, and tells the server only on request. */
async function lateLine(target: string): Promise<AsyncDisposable & { endpoint: string; letKnow(): void }> {
  const server: Socket[] = [];
  const line = createServer(client => {
    const upstream = connect(Number(new URL(target).port), '127.0.0.1');
    const isFirst = server.push(upstream) === 1;
    for (const socket of [client, upstream]) socket.on('error', () => {});
    upstream.pipe(client);
    if (!isFirst) return void client.pipe(upstream);
    client.once('data', bytes => {
      upstream.write(bytes);
      client.resetAndDestroy();
    });
  });
  await new Promise<void>(resolve => void line.listen(0, '127.0.0.1', resolve));
  const { port } = line.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    letKnow: () => void server[0]?.end(),
    async [Symbol.asyncDispose]() {
      for (const socket of server) socket.destroy();
      line.close();
    },
  };
}

s3Test('what came of a part that was broken off takes the place of no whole one, however late', async () => {
  await using line = await lateLine(s3.endpoint);
  const store = bucket({ endpoint: line.endpoint });
  const content = crypto.getRandomValues(new Uint8Array(1 << 20));
  // It is interrupted once, and sent again.
  await sendParts(stream(content, 100_000), [store.presign?.('late', 'PUT', 60) ?? '']);
  const sizes = async () => (await store.get('late')).length;
  expect(await sizes()).toBe(content.length);
  line.letKnow();
  // A window: the server may take what it has for all.
  await Bun.sleep(1_000);
  expect(await sizes()).toBe(content.length);
});
