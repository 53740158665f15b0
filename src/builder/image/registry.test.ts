import { afterEach, expect, test } from 'bun:test';
import type { Login, RegistryAccess } from '../../protocol/builder.ts';
import { guardedFetch } from './guarded-fetch.ts';
import { openRegistry } from './registry.ts';

type Seen = { at: string; authorization: string | undefined; accept: string | undefined };
type Answer = (request: Request, url: URL) => Response;

const servers: Bun.Server<undefined>[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop(true);
});

/** A server that gives prescribed answers and remembers its requests. Its name leads only here. */
function serverOf(answer: Answer) {
  const seen: Seen[] = [];
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const url = new URL(request.url);
      const header = (name: string) => request.headers.get(name) ?? undefined;
      seen.push({
        at: `${header('host')?.split(':')[0]}${url.pathname}${url.search}`,
        authorization: header('authorization'),
        accept: header('accept'),
      });
      return answer(request, url);
    },
  });
  servers.push(server);
  return { seen, host: (name: string) => `${name}.test:${server.port}` };
}
const asked: string[] = [];
const conversation = {
  resolve: ({ host, isSecure }: { host: string; isSecure: boolean }) => {
    asked.push(`${isSecure ? 'https' : 'http'} ${host.split('.')[0]}`);
    return Promise.resolve(['127.0.0.1']);
  },
};

function registry(answer: Answer, { login, ...more }: Partial<RegistryAccess> & { login?: Login } = {}) {
  const { seen, host } = serverOf(answer);
  const access: RegistryAccess = {
    host: host('registry'),
    repository: 'me/app',
    name: 'me/app:1',
    http: true,
    ...more,
  };
  return { seen, host, store: openRegistry(access, login, { ...conversation, job: undefined as never }) };
}
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
const failure = (code: string, message: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(message) });
const redirect = (location: string) => new Response(null, { status: 302, headers: { location } });
const challenge = (value: string) => new Response(null, { status: 401, headers: { 'www-authenticate': value } });

test('manifests and blobs are read by the names that the registry has for them', async () => {
  const { seen, store } = registry((_, { pathname }) => new Response(pathname));
  expect(text(await store.manifest('latest'))).toBe('/v2/me/app/manifests/latest');
  const parts: Uint8Array[] = [];
  for await (const part of await store.blob('sha256:a')) parts.push(part);
  expect(text(Buffer.concat(parts))).toBe('/v2/me/app/blobs/sha256:a');
  expect(seen[0]?.accept).toContain('application/vnd.oci.image.index.v1+json');
  expect([seen[1]?.accept, seen[1]?.authorization, store.authorization()]).toEqual(['*/*', undefined, undefined]);
});

test('a manifest has at most 4 MiB', async () => {
  const sized = (bytes: number) => registry(() => new Response('x'.repeat(bytes))).store.manifest('latest');
  expect((await sized(4 << 20)).length).toBe(4 << 20);
  await expect(sized((4 << 20) + 1)).rejects.toEqual(failure('too_large', 'the manifest of the image'));
});

test('a login is given to a registry that asks for one, and what it accepted again', async () => {
  const basic = `Basic ${Buffer.from('me:pass').toString('base64')}`;
  const isIn = (request: Request) => request.headers.get('authorization') === basic;
  const login = { username: 'me', password: 'pass' };
  const { seen, store } = registry(request => (isIn(request) ? new Response('it') : challenge('Basic realm="x"')), {
    login,
  });
  expect([text(await store.manifest('1')), text(await store.manifest('2'))]).toEqual(['it', 'it']);
  expect(seen.map(({ authorization }) => authorization)).toEqual([undefined, basic, basic]);
  expect(store.authorization()).toBe(basic);
  const again = registry(request => (isIn(request) ? new Response('it') : challenge('')), { authorization: basic });
  await again.store.manifest('1');
  expect(again.seen).toHaveLength(1);
});

test('without a login, the error says that one is needed', async () => {
  const { store } = registry(() => challenge('Basic realm="x"'));
  await expect(store.manifest('1')).rejects.toEqual(failure('forbidden', 'without credentials for the registry'));
});

test.each([
  ['token', {}, 'service=&scope=repository%3Ame%2Fapp%3Apull'],
  ['access_token', { service: 'it', scope: 'all' }, 'service=it&scope=all'],
])('a %s is fetched where the registry says, with the login', async (member, more, query) => {
  const login = { username: 'me', password: 'pass' };
  for (const given of [login, undefined]) {
    const { seen, store } = registry(
      (request, { pathname, port }) => {
        if (pathname === '/token') return Response.json({ [member]: 't' });
        if (request.headers.get('authorization') === 'Bearer t') return new Response('it');
        const parameters = Object.entries({ realm: `http://tokens.test:${port}/token`, ...more });
        return challenge(`Bearer ${parameters.map(([name, value]) => `${name}="${value}"`).join(',')}`);
      },
      given && { login: given },
    );
    expect(text(await store.manifest('1'))).toBe('it');
    expect(seen[1]?.at).toBe(`tokens.test/token?${query}`);
    expect(seen[1]?.authorization).toBe(given && `Basic ${Buffer.from('me:pass').toString('base64')}`);
    expect(store.authorization()).toBe('Bearer t');
  }
});

test.each([
  ['an error', () => Response.json({ token: 't' }, { status: 403 })],
  ['no token', () => Response.json({})],
  ['no text', () => Response.json({ token: 7 })],
  ['no JSON', () => new Response('<html>')],
  ['a token that is too long', () => Response.json({ token: 'x'.repeat(16_385) })],
])('where tokens are given out, %s is no access', async (_, answer) => {
  const { store } = registry((__, { pathname, port }) =>
    pathname === '/token' ? answer() : challenge(`Bearer realm="http://tokens.test:${port}/token"`),
  );
  await expect(store.manifest('1')).rejects.toEqual(failure('forbidden', 'gives no access to me/app:1'));
});

test('a registry must say where its tokens are', async () => {
  const { store } = registry(() => challenge('Bearer realm="nowhere"'));
  await expect(store.manifest('1')).rejects.toEqual(failure('unavailable', 'does not say where its tokens'));
});

test.each([
  [403, 'forbidden', 'may not be read: give credentials'],
  [404, 'not_found', 'was not found in its registry'],
  [429, 'unavailable', 'limits how often'],
  [500, 'unavailable', 'answered 500 for me/app:1'],
])('status %d is %s', async (status, code, message) => {
  const { store } = registry(() => new Response('why', { status }));
  await expect(store.manifest('1')).rejects.toEqual(failure(code, message));
});

test('credentials that do not help are told apart from none', async () => {
  const { store } = registry(() => challenge('Basic'), { login: { username: 'me', password: 'wrong' } });
  await expect(store.manifest('1')).rejects.toEqual(failure('forbidden', 'with these credentials'));
});

test('the node is asked about each host on the way, and credentials stay with theirs', async () => {
  const { seen, host } = serverOf((_, { pathname, port }) => {
    if (pathname === '/a') return redirect('/b');
    if (pathname === '/b') return redirect(`http://store.test:${port}/c`);
    return new Response('content');
  });
  asked.length = 0;
  const headers = { Authorization: 'secret', accept: 'x' };
  const response = await guardedFetch(`http://${host('first')}/a`, { headers }, conversation);
  expect(await response.text()).toBe('content');
  expect(asked).toEqual(['http first', 'http first', 'http store']);
  expect(seen).toEqual([
    { at: 'first.test/a', authorization: 'secret', accept: 'x' },
    { at: 'first.test/b', authorization: 'secret', accept: 'x' },
    { at: 'store.test/c', authorization: undefined, accept: 'x' },
  ]);
});

test('a host is asked about with whether it is reached by TLS', async () => {
  asked.length = 0;
  const refuses = {
    resolve: (question: { host: string; isSecure: boolean }) => conversation.resolve(question).then(() => []),
  };
  const fetched = guardedFetch('https://first.test/', { headers: {} }, refuses);
  await expect(fetched).rejects.toEqual(failure('unavailable', 'first.test has no address'));
  expect(asked).toEqual(['https first']);
});

test('redirects end somewhere, and lead to nothing but the web', async () => {
  const { seen, host } = serverOf((_, { pathname }) => {
    const left = Number(pathname.slice(1));
    return left > 0 ? redirect(`/${left - 1}`) : new Response('there');
  });
  const follow = (path: string) => guardedFetch(`http://${host('first')}/${path}`, { headers: {} }, conversation);
  expect(await (await follow('5')).text()).toBe('there');
  seen.length = 0;
  await expect(follow('6')).rejects.toEqual(failure('unavailable', 'redirects too often'));
  expect(seen).toHaveLength(6);
  for (const location of ['ftp://first.test/', 'file:///etc/passwd', 'http://[']) {
    const other = serverOf(() => redirect(location));
    const fetched = guardedFetch(`http://${other.host('first')}/`, { headers: {} }, conversation);
    await expect(fetched).rejects.toEqual(failure('unavailable', 'redirects to where it must not'));
  }
});

test('an answer that is no redirect is the answer, wherever it points', async () => {
  for (const [status, location] of [
    [200, '/x'],
    [400, '/x'],
    [304, null],
  ] as const) {
    const { host } = serverOf(() => new Response(null, { status, headers: location === null ? {} : { location } }));
    expect((await guardedFetch(`http://${host('first')}/`, { headers: {} }, conversation)).status).toBe(status);
  }
});

test('the first of several addresses that answers is used, otherwise the last error is reported', async () => {
  const { host } = serverOf(() => new Response('there'));
  const fetchFrom = (...addresses: string[]) =>
    guardedFetch(`http://${host('first')}/`, { headers: {} }, { resolve: () => Promise.resolve(addresses) });
  expect(await (await fetchFrom('127.0.0.2', '127.0.0.1')).text()).toBe('there');
  await expect(fetchFrom('127.0.0.2', '127.0.0.3')).rejects.toEqual(failure('unavailable', "can't be reached"));
});
