import { expect, test } from 'bun:test';
import { fileSignature } from '../../src/protocol/file-signature.ts';
import { AtollError } from '../../src/base/error.ts';
import { startFixture, to } from './support/fixture.ts';
import { startRawServer } from './support/raw-socket.ts';

const browser = {
  'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  Accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
  'Sec-Fetch-Mode': 'navigate',
};

function startEcho() {
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: request => Response.json({ url: request.url, headers: request.headers }),
  });
}

test('requests go where host and headers say', async () => {
  await using fixture = startFixture();
  await using server = startEcho();
  const port = Number(server.port);
  fixture.sandbox('one');
  const paths = async (headers: Record<string, string>) =>
    (await fetch(`${fixture.url}/some/path?q=1`, { headers })).json();
  expect(await paths({})).toMatchObject({ api: '/some/path' });
  expect(await paths({ Host: 'api.example.com' })).toMatchObject({ api: '/some/path' });
  for (const headers of [
    to('one', port),
    { 'Svc-Sandbox-Id': 'one', 'Svc-Sandbox-Port': String(port) },
    { Host: `${port}-one.example.com` },
    { Host: `${port}-ONE.localhost:3000`, ...to('two', 1) },
    { Host: 'sandbox.example.com', ...to('one', port) },
  ]) {
    expect(((await paths(headers)) as { url: string }).url).toEndWith('/some/path?q=1');
  }
});

test('a connect whose headers name the sandbox too, as Python’s 2.15 to 2.23 send it, is the API’s', async () => {
  await using fixture = startFixture();
  await using server = startEcho();
  fixture.sandbox('one');
  fixture.mapPort(49983, Number(server.port));
  const answer = async (path: string, headers: Record<string, string>) =>
    (await fetch(`${fixture.url}${path}`, { method: 'POST', headers })).json();
  for (const path of ['/sandboxes/one/connect', '/v2/sandboxes/one/connect', '/sandboxes/gone/connect']) {
    const [id = ''] = /one|gone/.exec(path) ?? [];
    for (const Host of ['localhost', 'api.example.com'])
      expect(await answer(path, { Host, ...to(id, 49983) })).toMatchObject({ api: path });
  }
  // What a sandbox serves under such a path stays its own.
  const own = { url: expect.stringMatching(/connect$/) };
  expect(await answer('/sandboxes/one/connect', to('one', Number(server.port)))).toMatchObject(own);
  expect(await answer('/sandboxes/two/connect', to('one', 49983))).toMatchObject(own);
  expect(await answer('/sandboxes/one/connect', { Host: '49983-one.example.com' })).toMatchObject(own);
});

test('the agent is the default port of the Svc- headers', async () => {
  await using fixture = startFixture();
  await using server = startEcho();
  fixture.sandbox('one');
  fixture.mapPort(49983, Number(server.port));
  expect((await fetch(`${fixture.url}/health`, { headers: { 'Svc-Sandbox-Id': 'one' } })).status).toBe(200);
});

test("the dashboard's session goes to the API, and into no sandbox", async () => {
  await using fixture = startFixture();
  await using server = startEcho();
  fixture.sandbox('one');
  const session = `__Host-atoll=${'0'.repeat(64)}`;
  const status = async (headers: Record<string, string>) => (await fetch(fixture.url, { headers })).status;
  expect(await status({ Cookie: session })).toBe(200);
  for (const Cookie of [session, `a=1; ${session}; b=2`, `a=1;${session}`]) {
    expect(await status({ Cookie, ...to('one', Number(server.port)) })).toBe(400);
    expect(await status({ Cookie, Host: `${server.port}-one.example.com` })).toBe(400);
  }
  expect(await status({ Cookie: 'a=1; theirs__Host-atoll=1', ...to('one', Number(server.port)) })).toBe(200);
});

test('requests that name no sandbox properly are refused with 400', async () => {
  await using fixture = startFixture();
  for (const headers of [
    { 'E2b-Sandbox-Id': 'one' },
    { 'E2b-Sandbox-Port': '80' },
    to('ONE!', 80),
    to('one', 0),
    to('one', 70_000),
    { Host: '3000-.example.com' },
    { Host: '3000-one' },
    { Host: '99999-one.example.com' },
  ]) {
    const response = await fetch(fixture.url, { headers });
    expect([headers, response.status]).toEqual([headers, 400]);
    expect(await response.json()).toMatchObject({ code: 400 });
  }
});

test('answers about sandboxes and ports are the contract’s', async () => {
  await using fixture = startFixture({ limits: { dialBackoffMs: [1, 1] } });
  fixture.sandbox('one');
  fixture.sandbox('sleeping', { state: 'paused' });
  fixture.sandbox('nodding', { state: 'pausing' });
  fixture.mapPort(80, 1);
  for (const id of ['unknown', 'sleeping', 'nodding']) {
    const response = await fetch(fixture.url, { headers: to(id, 80) });
    expect(response.status).toBe(502);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toEqual({ sandboxId: id, message: 'The sandbox was not found', code: 502 });
  }
  const closed = await fetch(fixture.url, { headers: to('one', 80) });
  expect(closed.status).toBe(502);
  expect(await closed.json()).toEqual({
    sandboxId: 'one',
    message: 'The sandbox is running but port is not open',
    port: 80,
    code: 502,
  });
  expect(fixture.dials.length).toBe(3);
});

test('a port that opens while the request waits is reached', async () => {
  await using fixture = startFixture({ limits: { dialBackoffMs: [5, 5, 5, 5] } });
  fixture.sandbox('one');
  fixture.mapPort(80, 1);
  await using server = startEcho();
  const response = fetch(fixture.url, { headers: to('one', 80) });
  while (fixture.dials.length < 2) await Bun.sleep(1);
  fixture.mapPort(80, Number(server.port));
  expect((await response).status).toBe(200);
});

test('a node that does not have the sandbox means that it is gone', async () => {
  await using fixture = startFixture({ dial: () => Promise.reject(new AtollError('not_found', 'not here')) });
  fixture.sandbox('one');
  const response = await fetch(fixture.url, { headers: to('one', 80) });
  expect([response.status, ((await response.json()) as { message: string }).message]).toEqual([
    502,
    'The sandbox was not found',
  ]);
});

test('the platform’s own trouble is never 502', async () => {
  for (const [error, status] of [
    [new AtollError('internal', 'x'), 503],
    [new Error('x'), 503],
    [new AtollError('deadline_exceeded', 'x'), 504],
  ] as const) {
    await using fixture = startFixture({ dial: () => Promise.reject(error) });
    fixture.sandbox('one');
    expect((await fetch(fixture.url, { headers: to('one', 80) })).status).toBe(status);
  }
  await using hanging = startFixture({ dial: () => new Promise(() => {}), limits: { dialTimeoutMs: 20 } });
  hanging.sandbox('one');
  expect((await fetch(hanging.url, { headers: to('one', 80) })).status).toBe(504);
  await using headless = startFixture({ apiSocketPath: '/nowhere/api.sock' });
  expect((await fetch(headless.url)).status).toBe(503);
});

test('the agent’s internal routes do not exist, for known and unknown sandboxes alike', async () => {
  await using fixture = startFixture();
  fixture.sandbox('one');
  for (const id of ['one', 'unknown']) {
    for (const [method, path] of [
      ['POST', '/init'],
      ['GET', '//init'],
      ['PUT', '/x/%2e%2e/freeze'],
    ] as const) {
      const response = await fetch(fixture.url + path, { method, headers: to(id, 49983) });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ code: 404, message: expect.any(String), path: expect.any(String) });
    }
  }
  expect(fixture.dials).toEqual([]);
});

test('private traffic needs its token on every port but the agent’s', async () => {
  await using fixture = startFixture();
  await using server = startEcho();
  const port = Number(server.port);
  fixture.mapPort(49983, port);
  fixture.sandbox('one', { ingress: { trafficAccessToken: 'secret', accessToken: 'agent-token' } });
  const ask = (headers: Record<string, string>, at = port) =>
    fetch(fixture.url, { headers: { ...to('one', at), ...headers } });
  for (const headers of [
    {},
    { 'e2b-traffic-access-token': 'wrong' },
    { 'e2b-traffic-access-token': '' },
    { 'x-access-token': 'agent-token' },
  ]) {
    const response = await ask(headers);
    expect(response.status).toBe(403);
    const body = (await response.json()) as { message: string };
    expect(body).toMatchObject({ sandboxId: 'one', code: 403 });
    expect(body.message).toContain('e2b-traffic-access-token');
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  }
  for (const name of ['E2B-Traffic-Access-Token', 'svc-traffic-access-token']) {
    const response = await ask({ [name]: 'secret' });
    expect(response.status).toBe(200);
    expect(JSON.stringify(await response.json())).not.toContain('secret');
  }
  expect((await ask({}, 49983)).status).toBe(200);
});

test('more connections than the limit are refused, and counted down when they end', async () => {
  await using fixture = startFixture({ limits: { connectionsPerSandboxMax: 2 } });
  using server = startRawServer();
  fixture.sandbox('one');
  fixture.sandbox('two');
  const ask = (id: string) => fetch(fixture.url, { headers: to(id, server.port) });
  const held = [ask('one'), ask('one')];
  const first = await server.accept();
  const second = await server.accept();
  const refused = await ask('one');
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({ sandboxId: 'one', code: 429, connectionLimit: 2 });
  const other = ask('two');
  const third = await server.accept();
  for (const connection of [first, second, third]) connection.send('HTTP/1.1 204 No Content\r\n\r\n');
  for (const response of [...held, other]) expect((await response).status).toBe(204);
  const again = ask('one');
  // One of the two kept connections carries it.
  while (!first.received.includes('GET / HTTP/1.1\r\n', 10) && !second.received.includes('GET / HTTP/1.1\r\n', 10))
    await Bun.sleep(1);
  for (const connection of [first, second]) connection.send('HTTP/1.1 204 No Content\r\n\r\n');
  expect((await again).status).toBe(204);
});

test('scripts of any origin can read errors about the agent, and preflights that name no sandbox are answered', async () => {
  await using fixture = startFixture({ api: () => new Response('api', { status: 418 }) });
  const response = await fetch(fixture.url, { headers: to('unknown', 49983) });
  expect(response.headers.get('access-control-allow-origin')).toBe('*');
  const preflight = (host: string, asked: string) =>
    fetch(fixture.url, {
      method: 'OPTIONS',
      headers: {
        Host: host,
        Origin: 'https://a.example',
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': asked,
      },
    });
  for (const [host, asked] of [
    ['sandbox.example.com', 'content-type'],
    ['localhost:3000', 'content-type, e2b-sandbox-id, e2b-sandbox-port'],
  ] as const) {
    const answer = await preflight(host, asked);
    expect(answer.status).toBe(204);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-allow-headers')).toBe(asked);
    expect(answer.headers.get('access-control-allow-methods')).toContain('POST');
  }
  expect((await preflight('localhost:3000', 'x-api-key')).status).toBe(418);
});

test('people get a page, scripts and clients JSON', async () => {
  await using fixture = startFixture({ limits: { dialBackoffMs: [] } });
  fixture.sandbox('one');
  fixture.mapPort(80, 1);
  const typeOf = async (headers: Record<string, string>, id = 'unknown') =>
    (await fetch(fixture.url, { headers: { ...to(id, 80), ...headers } })).headers.get('content-type');
  const page = 'text/html; charset=utf-8';
  const { 'Sec-Fetch-Mode': _, ...oldBrowser } = browser;
  expect(await typeOf(browser)).toBe(page);
  expect(await typeOf(browser, 'one')).toBe(page);
  expect(await typeOf(oldBrowser)).toBe(page);
  expect(await typeOf({})).toBe('application/json');
  expect(await typeOf({ ...oldBrowser, 'X-Requested-With': 'XMLHttpRequest' })).toBe('application/json');
  expect(await typeOf({ ...browser, Accept: 'application/json' })).toBe('application/json');
  expect(await typeOf({ ...browser, Accept: 'text/html, application/json' })).toBe(page);
  for (const mode of ['cors', 'no-cors', 'same-origin', 'websocket']) {
    expect(await typeOf({ ...browser, 'Sec-Fetch-Mode': mode })).toBe('application/json');
  }
  fixture.sandbox('sleeping', { state: 'paused' });
  const paused = await fetch(fixture.url, { headers: { ...to('sleeping', 80), ...browser } });
  expect([paused.status, (await paused.text()).includes('This sandbox is paused')]).toEqual([502, true]);
  const text = await (await fetch(fixture.url, { headers: { ...to('one', 80), ...browser } })).text();
  expect(text).toContain('port 80');
  expect(text).not.toContain('http://');
});

test('a page shows what the client sent as text', async () => {
  await using fixture = startFixture();
  const response = await fetch(`${fixture.url}/`, {
    headers: { ...browser, Host: '3000-<script>alert(1)</script>.example.com' },
  });
  expect(response.status).toBe(400);
  expect(await response.text()).not.toContain('<script>');
});

test('a signed URL of a file finds its sandbox on this machine without a name', async () => {
  await using fixture = startFixture();
  await using server = startEcho();
  fixture.mapPort(49983, Number(server.port));
  const token = 'a'.repeat(64);
  fixture.sandbox('other', { ingress: { accessToken: 'b'.repeat(64) } });
  fixture.sandbox('open');
  fixture.sandbox('one', { ingress: { accessToken: token } });
  const signed = { path: '/tmp/a b', username: 'user', expiration: null };
  const fetched = async (method: string, query: Record<string, string>) =>
    (await fetch(`${fixture.url}/files?${new URLSearchParams(query)}`, { method })).json();
  for (const [method, operation] of [
    ['GET', 'read'],
    ['POST', 'write'],
  ] as const) {
    const signature = fileSignature({ ...signed, operation }, token);
    const query = { path: signed.path, username: signed.username, signature };
    expect(((await fetched(method, query)) as { url: string }).url).toContain('/files?path=%2Ftmp%2Fa+b');
    for (const wrong of [{ path: '/etc/passwd' }, { username: 'root' }, { signature_expiration: '1' }])
      expect(await fetched(method, { ...query, ...wrong })).toMatchObject({ api: '/files' });
    expect(await fetched(method === 'GET' ? 'POST' : 'GET', query)).toMatchObject({ api: '/files' });
  }
  expect([...new Set(fixture.dials.map(({ sandboxId }) => sandboxId))]).toEqual(['one']);
  // Any page can open a WebSocket, and none is for a file.
  const signature = fileSignature({ ...signed, operation: 'read' }, token);
  const query = new URLSearchParams({ path: signed.path, username: signed.username, signature });
  const asked = async (upgrade: string) =>
    (await fetch(`${fixture.url}/files?${query}`, { headers: { Connection: 'Upgrade', Upgrade: upgrade } })).json();
  expect(await asked('websocket')).toMatchObject({ api: '/files' });
  expect(await asked('h2c')).toHaveProperty('url');
});

test('behind a load balancer nobody counts as of this machine, and no sandbox is looked for by a signature', async () => {
  await using fixture = startFixture({ trustForwardedHeaders: true });
  const token = 'a'.repeat(64);
  fixture.sandbox('one', { ingress: { accessToken: token } });
  const signed = { path: '/tmp/a', username: 'user', expiration: null, operation: 'read' } as const;
  const query = new URLSearchParams({ path: '/tmp/a', username: 'user', signature: fileSignature(signed, token) });
  expect(await (await fetch(`${fixture.url}/files?${query}`)).json()).toMatchObject({ api: '/files' });
  expect(fixture.dials).toEqual([]);
});

test('a file that a signed URL shows at the address of the dashboard runs no script there, whatever the sandbox says', async () => {
  await using fixture = startFixture();
  await using server = Bun.serve({
    port: 0,
    fetch: () =>
      new Response('<script>fetch("/session")</script>', {
        headers: { 'Content-Type': 'text/html', 'Content-Security-Policy': 'script-src *', 'Set-Cookie': 'a=b' },
      }),
  });
  fixture.mapPort(49983, Number(server.port));
  const token = 'a'.repeat(64);
  fixture.sandbox('one', { ingress: { accessToken: token } });
  const signed = { path: '/home/user/x.html', username: 'user', expiration: null, operation: 'read' } as const;
  const query = new URLSearchParams({ path: signed.path, username: 'user', signature: fileSignature(signed, token) });
  const policyOf = async (headers: Record<string, string>) => {
    const response = await fetch(`${fixture.url}/files?${query}`, { headers });
    return `${response.headers.get('content-security-policy')} ${response.headers.get('x-content-type-options')}`;
  };
  expect(await policyOf({})).toBe('script-src *, sandbox nosniff');
  expect(await policyOf({ 'Svc-Sandbox-Id': 'one' })).toBe('script-src * null');
  expect(await policyOf({ Host: '49983-one.example.com' })).toBe('script-src * null');
});
