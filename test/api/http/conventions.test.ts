import { expect, test } from 'bun:test';
import { connect } from 'node:net';
import { bodyBytesMax } from '../../../src/api/http/body.ts';
import { Platform, call } from '../platform.ts';

test('errors are JSON bodies whose code is the status', async () => {
  await using platform = await Platform.start();
  const cases: Array<[number, string, string, unknown?]> = [
    [404, 'GET', '/nowhere'],
    [404, 'GET', '/'],
    [404, 'GET', '/sandboxes/'],
    [405, 'PUT', '/sandboxes'],
    [405, 'DELETE', '/v2/sandboxes'],
    [400, 'POST', '/v2/sandboxes', '{"templateID": "base"'],
    [400, 'POST', '/v2/sandboxes', '[]'],
    [400, 'POST', '/v2/sandboxes', '"base"'],
    [400, 'POST', '/v2/sandboxes', 'null'],
    [400, 'POST', '/v2/sandboxes', ''],
    [400, 'GET', '/templates/%zz'],
    [400, 'GET', '/sandboxes/%E0%A4%A'],
  ];
  for (const [status, method, path, body] of cases) {
    const answer = await platform.call(method, path, body);
    expect({ method, path, status: answer.status, body: answer.body }).toMatchObject({
      status,
      body: { code: status },
    });
    expect((answer.body as { message: string }).message.length).toBeGreaterThan(5);
    expect(answer.headers.get('content-type')).toContain('application/json');
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  }
  expect((await platform.call('PUT', '/sandboxes')).headers.get('allow')).toBe('POST, GET');
});

test('a preflight passes without a credential and allows what clients send', async () => {
  await using platform = await Platform.start();
  const answer = await call(platform.socketPath, 'OPTIONS', '/v2/sandboxes', undefined, {
    origin: 'https://example.com',
  });
  expect(answer.status).toBe(204);
  expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
    expect(answer.headers.get('access-control-allow-methods')).toContain(method);
  }
  for (const header of ['X-API-Key', 'Authorization', 'X-Team-ID', 'package_version', 'sdk_runtime']) {
    expect(answer.headers.get('access-control-allow-headers')).toContain(header);
  }
  const list = await platform.call('GET', '/v2/sandboxes');
  for (const header of ['X-Next-Token', 'X-Total-Running', 'Retry-After', 'Should-Retry']) {
    expect(list.headers.get('access-control-expose-headers')).toContain(header);
  }
});

test('health needs no credential', async () => {
  await using platform = await Platform.start();
  expect(await call(platform.socketPath, 'GET', '/health')).toMatchObject({ status: 200, body: { status: 'ok' } });
  expect((await call(platform.socketPath, 'HEAD', '/health')).status).toBe(200);
});

test('a body beyond the limit is refused by its length and by what arrives', async () => {
  await using platform = await Platform.start();
  const headers = { 'x-api-key': platform.key };
  const long = JSON.stringify({ templateID: 'base', filler: 'x'.repeat(bodyBytesMax.createSandbox) });
  const byLength = await call(platform.socketPath, 'POST', '/v2/sandboxes', long, headers);
  expect(byLength).toMatchObject({
    status: 413,
    body: { code: 413, message: expect.stringContaining(String(bodyBytesMax.createSandbox)) },
  });

  const stranger = { email: 'ada@example.com', password: 'x'.repeat(bodyBytesMax.strangers) };
  expect(await call(platform.socketPath, 'POST', '/session', stranger)).toMatchObject({
    status: 413,
    body: { message: 'request body: longer than 16384 bytes (16 KiB)' },
  });

  const chunked = await fetch('http://api/v2/sandboxes', {
    unix: platform.socketPath,
    method: 'POST',
    headers,
    body: chunksOf(long),
  });
  expect(chunked.status).toBe(413);
  expect(await chunked.json()).toMatchObject({ code: 413 });
  expect(platform.node.created).toEqual([]);
});

test('a chunked body within the limit is read', async () => {
  await using platform = await Platform.start();
  const body = JSON.stringify({ templateID: 'base', filler: 'é'.repeat(100_000) });
  const answer = await fetch('http://api/v2/sandboxes', {
    unix: platform.socketPath,
    method: 'POST',
    headers: { 'x-api-key': platform.key },
    body: chunksOf(body),
  });
  expect(answer.status).toBe(201);
});

test('path parameters are decoded once', async () => {
  await using platform = await Platform.start();
  for (const path of ['/templates/aliases/default%2Fbase', '/templates/aliases/base%3Av1']) {
    expect((await platform.call('GET', path)).status).toBe(404);
  }
  // Doubly encoded it is another text, which no alias may be.
  expect((await platform.call('GET', '/templates/aliases/default%252Fbase')).status).toBe(400);
});

test('a signed URL that leads to no sandbox is told so', async () => {
  await using platform = await Platform.start();
  const messageOf = async (path: string) => ((await platform.call('GET', path)).body as { message: string }).message;
  expect(await messageOf('/files?path=a&signature=v1_x')).toMatch(/^No such route: GET \/files: .*host.*signature/);
  expect(await messageOf('/file')).toBe('No such route: GET /file');
});

test('what a part of the platform says of its own failure is for the log', async () => {
  await using platform = await Platform.start();
  const { sandboxID } = await platform.createSandbox();
  platform.node.before = async () => {
    throw new Error("ENOENT: no such file or directory, open '/secret/file'");
  };
  expect(await platform.call('PUT', `/sandboxes/${sandboxID}/network`, {})).toMatchObject({
    status: 500,
    body: { code: 500, message: 'Internal error' },
  });
  expect(platform.logged.join('')).toContain('/secret/file');
});

test('a request whose Host is none is answered', async () => {
  await using platform = await Platform.start();
  const text = await raw(platform.socketPath, 'GET /health HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n');
  expect(text).toStartWith('HTTP/1.1 200');
});

test('the answer comes also when it takes longer than a connection may be silent by default', async () => {
  await using platform = await Platform.start();
  platform.node.before = async call => {
    if (call === 'create') await Bun.sleep(13_000);
  };
  expect((await platform.call('POST', '/v2/sandboxes', { templateID: 'base' })).status).toBe(201);
}, 30_000);

function chunksOf(text: string): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let offset = 0;
  return new ReadableStream({
    pull(controller) {
      if (offset >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(offset, offset + 65_537));
      offset += 65_537;
    },
  });
}

function raw(socketPath: string, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(socketPath, () => socket.write(request));
    socket.on('data', data => (text += data.toString()));
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });
}
