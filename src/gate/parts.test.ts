import { createHash } from 'node:crypto';
import { afterEach, expect, test } from 'bun:test';
import { partBytes } from '../protocol/blob.ts';
import { receiveParts, sendParts } from './parts.ts';

type Seen = { method: string; path: string; bytes: Uint8Array; md5: string | null };

const stores: Bun.Server<undefined>[] = [];
afterEach(async () => {
  await Promise.all(stores.splice(0).map(store => store.stop(true)));
});

/**
 * A store that answers each request with `answer`, and records what it was asked and how many requests came at a time.
 */
function store(answer: (seen: Seen, tries: number) => Response | Promise<Response>) {
  const seen: Seen[] = [];
  const now = { atOnce: 0, most: 0 };
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    maxRequestBodySize: 2 * partBytes,
    async fetch(request) {
      now.most = Math.max(now.most, ++now.atOnce);
      const path = new URL(request.url).pathname;
      const [bytes, md5] = [await request.bytes(), request.headers.get('content-md5')];
      const one = { method: request.method, path, bytes, md5 };
      seen.push(one);
      const answered = await answer(one, seen.filter(earlier => earlier.path === path).length);
      now.atOnce--;
      return answered;
    },
  });
  stores.push(server);
  return { seen, now, urls: (...paths: string[]) => paths.map(path => `${server.url.origin}/${path}`) };
}

async function* pieces(...all: Uint8Array[]) {
  yield* all;
}

/** Receives the parts at the URLs, as texts. */
async function received(urls: string[]): Promise<string[]> {
  const parts: string[] = [];
  for await (const part of receiveParts(urls)) parts.push(Buffer.from(part).toString());
  return parts;
}

test('a stream is sent in parts, each whole and with its digest', async () => {
  const { seen, urls } = store(() => new Response());
  const source = Buffer.alloc(partBytes + 3, 'abc');
  await sendParts(pieces(source.subarray(0, 5), source.subarray(5)), urls('1', '2'));
  const sent = seen.toSorted((a, b) => a.path.localeCompare(b.path));
  expect(sent.map(({ method, path, bytes }) => [method, path, bytes.length])).toEqual([
    ['PUT', '/1', partBytes],
    ['PUT', '/2', 3],
  ]);
  expect(Buffer.concat(sent.map(({ bytes }) => bytes)).equals(source)).toBe(true);
  for (const { bytes, md5 } of sent) expect(md5).toBe(createHash('md5').update(bytes).digest('base64'));
});

test('a stream that is longer or shorter than announced is refused', async () => {
  const { urls } = store(() => new Response());
  await expect(sendParts(pieces(Buffer.alloc(partBytes + 1)), urls('1'))).rejects.toThrow('more to send');
  await expect(sendParts(pieces(Buffer.from('x')), urls('1', '2'))).rejects.toThrow('less to send');
});

test('at most three parts are under way at a time', async () => {
  const parked: (() => void)[] = [];
  const { now, urls } = store(async ({ path }) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    parked.push(resolve);
    if (parked.length === 3 || path === '/4') for (const go of parked.splice(0)) go();
    await promise;
    return new Response(path);
  });
  const paths = urls('1', '2', '3', '4');
  expect(await received(paths)).toEqual(['/1', '/2', '/3', '/4']);
  expect(now.most).toBe(3);
  now.most = 0;
  await sendParts(pieces(...paths.map(() => Buffer.alloc(partBytes))), paths);
  expect(now.most).toBe(3);
});

test('a busy store is asked again, and an invalid request fails at once', async () => {
  for (const status of [500, 429]) {
    const { seen, urls } = store((_, tries) => (tries === 1 ? new Response('', { status }) : new Response('part')));
    expect(await received(urls('1'))).toEqual(['part']);
    expect(seen).toHaveLength(2);
  }
  for (const [status, code, detail] of [
    [401, 'precondition', 'store_refused'],
    [403, 'precondition', 'store_refused'],
    // A write can't miss an object, so its bucket or key is gone.
    [404, 'precondition', 'store_refused'],
    [507, 'no_space', undefined],
    [400, 'unavailable', 'store_unavailable'],
  ] as const) {
    const { seen, urls } = store(() => new Response('', { status }));
    const error = await sendParts(pieces(Buffer.from('x')), urls('1')).catch((failure: unknown) => failure);
    expect({ status, ...pick(error), asked: seen.length }).toEqual({ status, code, detail, asked: 1 });
  }
});

test('a missing part is reported as such', async () => {
  const { urls } = store(() => new Response('', { status: 404 }));
  await expect(received(urls('1'))).rejects.toMatchObject({ code: 'not_found' });
});

const pick = (error: unknown) => {
  const { code, detail } = error as { code: string; detail?: string };
  return { code, detail };
};

test('no further parts are begun once one has failed', async () => {
  const { seen, urls } = store(() => new Response('', { status: 403 }));
  const paths = urls('1', '2', '3', '4', '5', '6');
  await expect(sendParts(pieces(...paths.map(() => Buffer.alloc(partBytes))), paths)).rejects.toMatchObject({
    code: 'precondition',
  });
  expect(seen.length).toBeLessThan(paths.length);
});

test('a store that stays away is given up after three tries, without its URL in the message', async () => {
  const { seen, urls } = store(() => new Response('', { status: 503 }));
  await expect(received(urls('secret'))).rejects.toThrow(/^The store answers 503$/);
  expect(seen).toHaveLength(3);
});
