import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { beforeAll, expect, test } from 'bun:test';
import { controlTokenHeader } from '../../src/protocol/agent.ts';
import { envelope } from './support/rpc.ts';
import { sharedAgent } from './support/shared-agent.ts';
import { startAgent } from './support/test-agent.ts';

const token = 'the token of this sandbox';
const agent = sharedAgent({ init: { accessToken: token, defaultUser: 'root', envVars: { A: 'b' } } });
beforeAll(() => {
  writeFileSync(agent.path('/tmp/file'), 'content');
});

const nowSeconds = Math.floor(Date.now() / 1000);

/** Computed from the words of the contract, not with the agent's own code. */
function signature(path: string, operation: string, username: string, expiration?: number, by = token): string {
  const text = [path, operation, username, by, ...(expiration === undefined ? [] : [expiration])].join(':');
  return `v1_${createHash('sha256').update(text).digest('base64').replace(/=+$/, '')}`;
}

const query = (values: Record<string, string | number | undefined>) =>
  new URLSearchParams(
    Object.entries(values).flatMap(([key, value]) =>
      value === undefined ? [] : [[key, String(value)] as [string, string]],
    ),
  ).toString();

/** Sends a request line as it is: fetch would clean the path first. */
function rawStatus(line: string, headers: string[] = [], body = ''): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(agent.port, '127.0.0.1', () =>
      socket.write(
        `${line} HTTP/1.1\r\nHost: a\r\n${headers.map(header => `${header}\r\n`).join('')}Content-Length: ${body.length}\r\n\r\n${body}`,
      ),
    );
    socket.once('data', data => {
      resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(data.toString('latin1'))?.[1]));
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

const everything: [method: string, path: string, type: string][] = [
  ['GET', '/metrics', ''],
  ['GET', '/envs', ''],
  ['GET', '/files?path=/tmp/file', ''],
  ['POST', '/files?path=/tmp/other', 'application/octet-stream'],
  ['POST', '/files/compose', 'application/json'],
  ['POST', '/unknown', ''],
  ...['Start', 'Connect'].map((name): [string, string, string] => [
    'POST',
    `/process.Process/${name}`,
    'application/connect+json',
  ]),
  ...['List', 'SendInput', 'SendSignal', 'CloseStdin', 'Update'].map((name): [string, string, string] => [
    'POST',
    `/process.Process/${name}`,
    'application/json',
  ]),
  ['POST', '/process.Process/StreamInput', 'application/connect+json'],
  ...['Stat', 'MakeDir', 'Move', 'Remove', 'ListDir', 'CreateWatcher', 'GetWatcherEvents', 'RemoveWatcher'].map(
    (name): [string, string, string] => ['POST', `/filesystem.Filesystem/${name}`, 'application/json'],
  ),
  ['POST', '/filesystem.Filesystem/WatchDir', 'application/connect+json'],
];

test.each(everything)('%s %s lets nobody in without the right token', async (method, path, type) => {
  const body = method === 'GET' ? {} : { body: type === 'application/connect+json' ? envelope({}) : '{}' };
  for (const headers of [
    {},
    { 'x-access-token': 'another' },
    { 'x-access-token': '' },
    { 'x-access-token': `${token} ` + 'x' },
  ]) {
    const response = await fetch(agent.url + path, {
      method,
      headers: { ...(type && { 'content-type': type }), ...headers },
      ...body,
    });
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ code: 401, message: expect.any(String) });
  }
});

test('with the token everything is open', async () => {
  const headers = { 'x-access-token': token };
  expect(await (await fetch(`${agent.url}/envs`, { headers })).json()).toEqual({ A: 'b' });
  expect(await (await fetch(`${agent.url}/files?path=/tmp/file`, { headers })).text()).toBe('content');
  const list = await fetch(`${agent.url}/process.Process/List`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json; charset=utf-8' },
    body: '{}',
  });
  expect({ status: list.status, body: await list.json() }).toEqual({ status: 200, body: {} });
  expect((await fetch(`${agent.url}/unknown`, { headers })).status).toBe(404);
});

test('health needs none', async () => {
  const response = await fetch(`${agent.url}/health`);
  expect({ status: response.status, cache: response.headers.get('cache-control') }).toEqual({
    status: 204,
    cache: 'no-store',
  });
});

test.each([
  ['reading', 'GET', signature('/tmp/file', 'read', ''), {}],
  ['reading as a user', 'GET', signature('/tmp/file', 'read', 'root'), { username: 'root' }],
  [
    'reading until later',
    'GET',
    signature('/tmp/file', 'read', '', nowSeconds + 100),
    { signature_expiration: nowSeconds + 100 },
  ],
  ['writing', 'POST', signature('/tmp/file', 'write', ''), {}],
])('a signature for %s lets in', async (_, method, signed, more) => {
  const url = `${agent.url}/files?${query({ path: '/tmp/file', signature: signed, ...more })}`;
  const response = await fetch(url, {
    method,
    ...(method === 'POST' ? { body: 'content', headers: { 'content-type': 'application/octet-stream' } } : {}),
  });
  expect(response.status).toBe(200);
});

test.each([
  ['for another path', signature('/tmp/other', 'read', ''), {}],
  ['for writing', signature('/tmp/file', 'write', ''), {}],
  ['for another user', signature('/tmp/file', 'read', 'user'), {}],
  ['by another token', signature('/tmp/file', 'read', '', undefined, 'another'), {}],
  [
    'that ends earlier than it says',
    signature('/tmp/file', 'read', '', nowSeconds + 1),
    { signature_expiration: nowSeconds + 100 },
  ],
  ['that is padded', `${signature('/tmp/file', 'read', '')}=`, {}],
  ['that is wrong and expired', 'v1_wrong', { signature_expiration: 1 }],
])('a signature %s does not', async (_, signed, more) => {
  const response = await fetch(`${agent.url}/files?${query({ path: '/tmp/file', signature: signed, ...more })}`);
  expect({ status: response.status, body: await response.json() }).toEqual({
    status: 401,
    body: { code: 401, message: 'invalid signature' },
  });
});

test('an expired signature is told as that, word for word', async () => {
  const past = nowSeconds - 10;
  const response = await fetch(
    `${agent.url}/files?${query({ path: '/tmp/file', signature: signature('/tmp/file', 'read', '', past), signature_expiration: past })}`,
  );
  expect(response.status).toBe(401);
  expect(await response.text()).toBe('{"code":401,"message":"signature is already expired"}');
});

test('a relative path is signed as it is given', async () => {
  writeFileSync(agent.path('/root/rel ü'), 'relative');
  const response = await fetch(
    `${agent.url}/files?${query({ path: 'rel ü', signature: signature('rel ü', 'read', '') })}`,
  );
  expect(await response.text()).toBe('relative');
});

test('a wrong token is not helped by a right signature', async () => {
  const response = await fetch(
    `${agent.url}/files?${query({ path: '/tmp/file', signature: signature('/tmp/file', 'read', '') })}`,
    { headers: { 'x-access-token': 'another' } },
  );
  expect(response.status).toBe(401);
});

test.each([
  ['POST', '/init', []],
  ['POST', '/init', [`${controlTokenHeader}: wrong`]],
  ['POST', '/init', [`${controlTokenHeader}: `]],
  ['POST', '/init', [`X-Access-Token: ${token}`]],
  ['GET', '/init', [`X-Access-Token: ${token}`]],
  ['PUT', '/init', [`X-Access-Token: ${token}`]],
  ['POST', '//init', [`X-Access-Token: ${token}`]],
  ['POST', '/x/../init', [`X-Access-Token: ${token}`]],
  ['POST', '/%69nit', [`X-Access-Token: ${token}`]],
  ['POST', '/init/', [`X-Access-Token: ${token}`]],
  ['POST', '/init?x', [`X-Access-Token: ${token}`]],
  ['POST', '/INIT', [`X-Access-Token: ${token}`]],
  ['POST', 'http://a/init', [`X-Access-Token: ${token}`]],
])('%s %s with %p does not exist', async (method, path, headers) => {
  expect(
    await rawStatus(`${method} ${path}`, [...headers, 'Content-Type: application/json'], '{"accessToken":null}'),
  ).toBe(404);
  expect((await fetch(`${agent.url}/envs`)).status).toBe(401);
});

test('an init that is broken or too large changes nothing', async () => {
  for (const [body, status] of [
    ['not json', 400],
    ['[]', 400],
    ['{"envVars":{"A":5}}', 400],
    ['{"timestamp":"yesterday"}', 400],
    [`{"x":"${'y'.repeat(5 << 20)}"}`, 413],
  ] as const) {
    const response = await fetch(`${agent.url}/init`, {
      method: 'POST',
      headers: { [controlTokenHeader]: agent.controlToken },
      body,
    });
    expect(response.status).toBe(status);
  }
  expect(await (await fetch(`${agent.url}/envs`, { headers: { 'x-access-token': token } })).json()).toEqual({ A: 'b' });
});

test('pages of any origin may ask, and read what they are answered', async () => {
  const preflight = await fetch(`${agent.url}/process.Process/Start`, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://page.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type,x-access-token',
    },
  });
  expect(preflight.status).toBe(204);
  expect(Object.fromEntries(preflight.headers)).toMatchObject({
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'HEAD, GET, POST, PUT, PATCH, DELETE',
    'access-control-allow-headers': 'content-type,x-access-token',
    'access-control-max-age': '7200',
  });
  const refused = await fetch(`${agent.url}/envs`, { headers: { origin: 'https://page.example' } });
  expect(refused.headers.get('access-control-allow-origin')).toBe('*');
  for (const name of ['Location', 'Cache-Control', 'X-Content-Type-Options', 'Grpc-Status'])
    expect(refused.headers.get('access-control-expose-headers')).toContain(name);
});

test('calls in another form are refused', async () => {
  const headers = { 'x-access-token': token };
  const status = async (path: string, type: string, body: Bun.BodyInit, more: Record<string, string> = {}) =>
    (await fetch(agent.url + path, { method: 'POST', headers: { ...headers, 'content-type': type, ...more }, body }))
      .status;
  expect(await status('/process.Process/List', 'application/proto', '')).toBe(415);
  expect(await status('/process.Process/Start', 'application/json', '{}')).toBe(415);
  expect(await status('/process.Process/List', 'application/json', 'no json')).toBe(400);
  expect(await status('/process.Process/List', 'application/json', '[]')).toBe(400);
  expect(await status('/process.Process/List', 'application/json', '{}', { 'content-encoding': 'gzip' })).toBe(501);
  expect(await status('/process.Process/List', 'application/json', `{"x":"${'y'.repeat(100_000)}"}`)).toBe(429);
  expect((await fetch(`${agent.url}/process.Process/List`, { headers })).status).toBe(405);
  expect(await status('/process.Process/Nothing', 'application/json', '{}')).toBe(404);
  const stream = await fetch(`${agent.url}/process.Process/Start`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/connect+json' },
    body: envelope({}, 1),
  });
  expect(await stream.text()).toContain('unimplemented');
  const huge = Buffer.from([0, 0x7f, 0xff, 0xff, 0xff]);
  const tooLong = await fetch(`${agent.url}/process.Process/Start`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/connect+json' },
    body: huge,
  });
  expect(await tooLong.text()).toContain('resource_exhausted');
});

test('headers are bounded', async () => {
  expect(await rawStatus('GET /health', [`X-Long: ${'y'.repeat(200_000)}`])).toBe(431);
});

test('before the first init nothing is answered but health', async () => {
  await using blank = await startAgent({ root: 'empty', init: null });
  expect((await fetch(`${blank.url}/health`)).status).toBe(204);
  for (const [method, path, type] of everything) {
    const response = await fetch(blank.url + path, {
      method,
      headers: type ? { 'content-type': type } : {},
      ...(method === 'GET' ? {} : { body: '{}' }),
    });
    expect(response.status).toBe(503);
  }
  expect((await fetch(`${blank.url}/init`, { method: 'POST', body: '{}' })).status).toBe(404);
  expect((await blank.init({ defaultUser: 'root' })).status).toBe(204);
  expect((await fetch(`${blank.url}/envs`)).status).toBe(200);
});

test('files that come after the answer are there for the next request', async () => {
  await using blank = await startAgent({ root: 'empty', init: null });
  for (const hostname of ['first', 'second', 'third']) {
    expect((await blank.init({ defaultUser: 'root', hostname, filesLater: true })).status).toBe(204);
    expect(await (await fetch(`${blank.url}/files?path=/etc/hostname`)).text()).toBe(`${hostname}\n`);
  }
});

test('a later init replaces what it names, keeps the rest, and an older one is ignored', async () => {
  await using other = await startAgent({
    root: 'empty',
    init: { envVars: { A: '1', B: '2' }, accessToken: 'first', timestamp: '2024-01-02T00:00:00Z' },
  });
  const envs = async (accessToken: string) => {
    const response = await fetch(`${other.url}/envs`, { headers: { 'x-access-token': accessToken } });
    return response.status === 200 ? response.json() : response.status;
  };
  await other.init({ envVars: { C: '3' }, timestamp: '2024-01-03T00:00:00Z' });
  expect(await envs('first')).toEqual({ C: '3' });
  const late = await other.init({ envVars: { D: '4' }, accessToken: 'late', timestamp: '2024-01-01T00:00:00Z' });
  expect({ status: late.status, version: late.headers.get('x-envd-version') }).toEqual({
    status: 204,
    version: '0.6.13',
  });
  expect(await envs('first')).toEqual({ C: '3' });
  await other.init({ accessToken: 'second' });
  expect(await envs('first')).toBe(401);
  expect(await envs('second')).toEqual({ C: '3' });
  await other.init({ accessToken: null });
  expect(await envs('')).toEqual({ C: '3' });
});
