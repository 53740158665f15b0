import { afterAll, beforeEach, expect, test } from 'bun:test';
import { checkStore } from './check.ts';
import { openBlobStore } from './open.ts';
import { s3Store } from './s3.ts';

// Tests calls to a store; the store here implements the part of S3 that they use. `test/store` has the tests with a
// real one.

const objects = new Map<string, Uint8Array<ArrayBuffer>>();
const asked: URL[] = [];
const it: { pageKeys: number; answer: ((request: Request, url: URL) => Response | null) | null } = {
  pageKeys: 1000,
  answer: null,
};
beforeEach(() => {
  objects.clear();
  asked.length = 0;
  Object.assign(it, { pageKeys: 1000, answer: null });
});

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const url = new URL(request.url);
    asked.push(url);
    const other = it.answer?.(request, url);
    if (other) return other;
    const key = decodeURIComponent(url.pathname).replace(/^\/bucket\/?/, '');
    if (url.searchParams.get('list-type') === '2') return listed(url.searchParams);
    if (request.method === 'PUT') objects.set(key, new Uint8Array(await request.arrayBuffer()));
    if (request.method === 'DELETE') objects.delete(key);
    const object = objects.get(key);
    if (request.method !== 'GET') return new Response(null, { status: request.method === 'DELETE' ? 204 : 200 });
    return object ? new Response(object) : refusal('NoSuchKey', 404);
  },
});
afterAll(() => server.stop(true));

const refusal = (code: string, status: number) =>
  new Response(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`, {
    status,
    headers: { 'content-type': 'application/xml' },
  });

const changedAt = '2026-01-02T03:04:05.000Z';
const contents = (key: string, bytes: number) =>
  `<Contents><Key>${key}</Key><LastModified>${changedAt}</LastModified><Size>${bytes}</Size></Contents>`;
const page = (...parts: string[]) =>
  new Response(`<?xml version="1.0"?><ListBucketResult><Name>bucket</Name>${parts.join('')}</ListBucketResult>`, {
    headers: { 'content-type': 'application/xml' },
  });

/** ListObjectsV2: keys in order, a page of them, and a token where there are more. */
function listed(query: URLSearchParams): Response {
  const after = query.get('continuation-token') ?? '';
  const keys = [...objects.keys()].toSorted().filter(key => key.startsWith(query.get('prefix') ?? '') && key > after);
  const shown = keys.slice(0, Math.min(it.pageKeys, Number(query.get('max-keys'))));
  const token = shown.length < keys.length ? shown.at(-1) : undefined;
  return page(
    `<IsTruncated>${token !== undefined}</IsTruncated>`,
    token === undefined ? '' : `<NextContinuationToken>${token}</NextContinuationToken>`,
    ...shown.map(key => contents(key, objects.get(key)?.length ?? 0)),
  );
}

const account = { bucket: 'bucket', region: 'us-east-1', keyId: 'key', secret: 'secret-of-the-test' };
const opened = (prefix = 'some/prefix') => s3Store({ ...account, prefix, endpoint: server.url.origin });
const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const lists = () => asked.filter(url => url.searchParams.has('list-type')).map(url => url.searchParams);

test('objects are under the prefix of the store, or at the root of the bucket', async () => {
  for (const [prefix, base] of [
    ['some/prefix', 'some/prefix/'],
    ['', ''],
  ] as const) {
    const store = opened(prefix);
    await store.put('a/b', bytes('content'));
    expect([...objects.keys()]).toEqual([`${base}a/b`]);
    expect(Buffer.from(await store.get('a/b')).toString()).toBe('content');
    expect(await Array.fromAsync(store.list('a/'))).toEqual([
      { key: 'a/b', bytes: 7, changedAtMs: Date.parse(changedAt) },
    ]);
    await store.remove('a/b');
    expect(objects.size).toBe(0);
  }
});

test('a place is shown without a key', () => {
  expect(opened().place).toBe(`s3://bucket/some/prefix at ${server.url.origin}`);
  expect(s3Store({ ...account, prefix: '', endpoint: undefined }).place).toBe('s3://bucket');
  expect(openBlobStore({ kind: 's3', ...account, prefix: 'p', endpoint: undefined }).place).toBe('s3://bucket/p');
  expect(openBlobStore({ kind: 'directory', path: '/shared' }, '/seen/here').place).toBe('/shared');
});

test('a missing object differs from a store that fails', async () => {
  const store = opened();
  await expect(store.get('none')).rejects.toMatchObject({
    code: 'not_found',
    message: `none is not in the store ${store.place}`,
  });
  it.answer = () => refusal('AccessDenied', 403);
  for (const work of [() => store.get('a'), () => store.put('a', bytes('a')), () => store.remove('a')])
    await expect(work()).rejects.toMatchObject({ code: 'precondition', detail: 'store_refused' });
  await expect(store.head('a')).rejects.toMatchObject({ code: 'precondition' });
  await expect(Array.fromAsync(store.list(''))).rejects.toMatchObject({ code: 'precondition' });
});

test('the size is that of the object itself, and not of one with a longer name', async () => {
  const store = opened();
  await store.put('ab', bytes('longer'));
  expect(await store.head('a')).toBe(null);
  await store.put('a', bytes('a'));
  expect(await store.head('a')).toBe(1);
  await store.put('empty', bytes(''));
  expect(await store.head('empty')).toBe(0);
});

test('a list goes on from page to page, until there is no more', async () => {
  const store = opened();
  for (const name of ['a', 'b', 'c', 'd', 'e']) await store.put(`l/${name}`, bytes(name));
  it.pageKeys = 2;
  expect((await Array.fromAsync(store.list('l/'))).map(({ key }) => key)).toEqual(['l/a', 'l/b', 'l/c', 'l/d', 'l/e']);
  expect(lists().map(query => [query.get('continuation-token'), query.get('max-keys')])).toEqual([
    [null, '1000'],
    ['some/prefix/l/b', '1000'],
    ['some/prefix/l/d', '1000'],
  ]);
});

test('a list ends where the store says so, or can’t say how to continue', async () => {
  const ends = [
    '<IsTruncated>false</IsTruncated><NextContinuationToken>more</NextContinuationToken>',
    '<IsTruncated>true</IsTruncated>',
    '',
  ];
  for (const end of ends) {
    it.answer = () => page(end, contents('some/prefix/a', 1));
    expect(await Array.fromAsync(opened().list(''))).toHaveLength(1);
  }
  expect(asked).toHaveLength(ends.length);
});

test('an object without facts from the store counts as empty, and as new', async () => {
  it.answer = () => page('<Contents><Key>some/prefix/a</Key></Contents>');
  const beforeMs = Date.now();
  const [object] = await Array.fromAsync(opened().list(''));
  expect(object).toMatchObject({ key: 'a', bytes: 0 });
  expect(object?.changedAtMs).toBeGreaterThanOrEqual(beforeMs);
});

test('a failed write is not repeated: the first one could overtake a second one', async () => {
  it.answer = () => refusal('InternalError', 500);
  await expect(opened().put('a', bytes('a'))).rejects.toMatchObject({ code: 'unavailable' });
  expect(asked).toHaveLength(1);
});

test('others read and write one object each by URLs, for a limited time', async () => {
  const { presign } = opened();
  const put = presign?.('a', 'PUT', 60) ?? '';
  expect(new URL(put).searchParams.get('X-Amz-Expires')).toBe('60');
  expect((await fetch(put, { method: 'PUT', body: 'by URL' })).status).toBe(200);
  expect(await (await fetch(presign?.('a', 'GET', 60) ?? '')).text()).toBe('by URL');
  expect([...objects.keys()]).toEqual(['some/prefix/a']);
});

test('a usable store is found to be so, and nothing is left in it', async () => {
  await checkStore(opened());
  expect(objects.size).toBe(0);
});

test('a store that answers other bytes than were written is refused', async () => {
  it.answer = request =>
    request.method === 'GET' && !request.url.includes('list-type') ? new Response('other') : null;
  const store = opened();
  await expect(checkStore(store)).rejects.toMatchObject({
    code: 'precondition',
    message: `The store ${store.place} answers something else than was written`,
  });
  expect(objects.size).toBe(0);
  // A second store lists another size.
  it.answer = (_, url) => (url.searchParams.has('list-type') ? page('') : null);
  await expect(checkStore(opened())).rejects.toThrow('answers something else');
});

test('a store that refuses signed URLs is useless for machines', async () => {
  it.answer = (_, url) => (url.searchParams.has('X-Amz-Expires') ? refusal('AccessDenied', 403) : null);
  await expect(checkStore(opened())).rejects.toMatchObject({
    detail: 'store_refused',
    message: expect.stringContaining('refuses signed URLs (403): machines read by them'),
  });
  it.answer = null;
  const away = { ...opened(), presign: () => 'http://127.0.0.1:9/' };
  await expect(checkStore(away)).rejects.toThrow('refuses signed URLs: machines');
  await checkStore({ ...opened(), presign: null });
});
