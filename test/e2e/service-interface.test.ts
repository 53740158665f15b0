import { afterAll, beforeAll, expect, test } from 'bun:test';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';

// The operator's interface document as written (`Svc-` headers, v1 routes), used with curl.

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
}, 600_000);
afterAll(() => platform?.[Symbol.asyncDispose]());

type Answer = { status: number; type: string; body: string };

async function curl(path: string, ...args: string[]): Promise<Answer> {
  const format = '\n%{http_code} %{content_type}';
  const { stdout, stderr, exitCode } = await runToEnd([
    'curl',
    '-sS',
    '-w',
    format,
    ...args,
    `${platform.ready.url}${path}`,
  ]);
  if (exitCode !== 0) throw new Error(`curl ended with ${exitCode}: ${stderr}`);
  const end = stdout.lastIndexOf('\n');
  const [status = '', type = ''] = stdout.slice(end + 1).split(' ');
  return { status: Number(status), type, body: stdout.slice(0, end) };
}

const key = () => ['-H', `X-API-Key: ${platform.ready.apiKey}`];
const json = (value: unknown) => ['-H', 'Content-Type: application/json', '-d', JSON.stringify(value)];

async function created(body: Record<string, unknown>) {
  const answer = await curl(
    '/sandboxes',
    '-X',
    'POST',
    ...key(),
    ...json({ templateID: 'base', timeout: 120, ...body }),
  );
  expect(answer.status).toBe(201);
  return JSON.parse(answer.body) as { sandboxID: string; envdAccessToken?: string | null; [field: string]: unknown };
}

const inside = (sandboxId: string, ...more: string[]) => [
  '-H',
  `Svc-Sandbox-Id: ${sandboxId}`,
  '-H',
  'Svc-Sandbox-Port: 49983',
  ...more,
];
const remove = (sandboxId: string) => curl(`/sandboxes/${sandboxId}`, '-X', 'DELETE', ...key());

/** The messages of a Connect stream: five bytes of flags and length precede each. */
function envelopes(bytes: Uint8Array): { flags: number; message: Record<string, unknown> }[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = [];
  for (let at = 0; at < bytes.length;) {
    const length = view.getUint32(at + 1);
    found.push({
      flags: view.getUint8(at),
      message: JSON.parse(new TextDecoder().decode(bytes.subarray(at + 5, at + 5 + length))) as Record<string, unknown>,
    });
    at += 5 + length;
  }
  return found;
}

test('create, list and end a sandbox', async () => {
  const sandbox = await created({ metadata: { team: 'blue' } });
  expect(sandbox.sandboxID).toMatch(/^[a-z0-9]+$/);
  expect(sandbox['envdVersion']).toMatch(/^\d+\.\d+\.\d+$/);
  for (const field of ['templateID', 'clientID']) expect(sandbox[field]).toBeString();
  expect(sandbox['domain'] ?? null).toBeNull();
  const list = await curl('/sandboxes?metadata=team%3Dblue', ...key());
  expect(JSON.parse(list.body)).toMatchObject([
    { sandboxID: sandbox.sandboxID, state: 'running', metadata: { team: 'blue' }, diskSizeMB: expect.any(Number) },
  ]);
  expect((await remove(sandbox.sandboxID)).status).toBe(204);
  expect(await remove(sandbox.sandboxID)).toMatchObject({
    status: 404,
    type: expect.stringContaining('application/json'),
  });
});

test('without `secure` no token is given, and the agent answers without one', async () => {
  const { sandboxID, envdAccessToken } = await created({});
  expect(envdAccessToken ?? null).toBeNull();
  expect((await curl('/health', ...inside(sandboxID))).status).toBe(204);
  expect((await curl('/envs', ...inside(sandboxID))).status).toBe(200);
  await remove(sandboxID);
});

test('with `secure` the agent answers only to the token', async () => {
  const { sandboxID, envdAccessToken } = await created({ secure: true });
  expect(envdAccessToken).toMatch(/^[0-9a-f]{64}$/);
  expect((await curl('/envs', ...inside(sandboxID))).status).toBe(401);
  expect((await curl('/envs', ...inside(sandboxID, '-H', `X-Access-Token: ${'0'.repeat(64)}`))).status).toBe(401);
  expect((await curl('/envs', ...inside(sandboxID, '-H', `X-Access-Token: ${envdAccessToken}`))).status).toBe(200);
  await remove(sandboxID);
});

test('files go up and down, relative to the user’s home', async () => {
  const { sandboxID } = await created({});
  const up = await curl(
    '/files?path=note.txt&username=user',
    ...inside(sandboxID),
    '-F',
    'file=@-;filename=note.txt',
    '-X',
    'POST',
    '--form-string',
    'x=y',
  ).catch((error: Error) => error);
  expect(up).toMatchObject({ status: 200 });
  await curl(
    '/files?path=note.txt',
    ...inside(sandboxID),
    '-X',
    'POST',
    '-H',
    'Content-Type: application/octet-stream',
    '--data-binary',
    'words',
  );
  expect(await curl('/files?path=note.txt&username=user', ...inside(sandboxID))).toMatchObject({
    status: 200,
    body: 'words',
  });
  expect(await curl('/files?path=/home/user/note.txt', ...inside(sandboxID))).toMatchObject({
    status: 200,
    body: 'words',
  });
  expect((await curl('/files?path=missing', ...inside(sandboxID))).status).toBe(404);
  await remove(sandboxID);
});

test('Move is a unary Connect call, with a user by Basic authorization', async () => {
  const { sandboxID } = await created({});
  await curl(
    '/files?path=a.txt',
    ...inside(sandboxID),
    '-X',
    'POST',
    '-H',
    'Content-Type: application/octet-stream',
    '--data-binary',
    '1',
  );
  const moved = await curl(
    '/filesystem.Filesystem/Move',
    ...inside(sandboxID),
    '-u',
    'user:',
    '-H',
    'Connect-Protocol-Version: 1',
    ...json({ source: 'a.txt', destination: 'b.txt' }),
  );
  expect(JSON.parse(moved.body)).toMatchObject({ entry: { name: 'b.txt', path: '/home/user/b.txt', owner: 'user' } });
  await remove(sandboxID);
});

test('Start streams a process’s events', async () => {
  const { sandboxID } = await created({});
  const request = Buffer.from(
    JSON.stringify({ process: { cmd: '/bin/bash', args: ['-l', '-c', 'echo words; exit 3'] }, stdin: false }),
  );
  const head = Buffer.alloc(5);
  head.writeUInt32BE(request.length, 1);
  const response = await fetch(`${platform.ready.url}/process.Process/Start`, {
    method: 'POST',
    headers: {
      'Svc-Sandbox-Id': sandboxID,
      'Svc-Sandbox-Port': '49983',
      'Content-Type': 'application/connect+json',
      'Connect-Protocol-Version': '1',
    },
    body: Buffer.concat([head, request]),
  });
  const messages = envelopes(new Uint8Array(await response.arrayBuffer()));
  const events = messages.map(
    ({ message }) =>
      message['event'] as Record<string, { pid?: number; stdout?: string; exitCode?: number }> | undefined,
  );
  expect(events[0]?.['start']?.pid).toBeGreaterThan(0);
  expect(events.map(event => Buffer.from(event?.['data']?.stdout ?? '', 'base64').toString()).join('')).toBe('words\n');
  expect(events.find(event => event?.['end'])?.['end']?.exitCode).toBe(3);
  expect(messages.at(-1)?.flags).toBe(2);
  await remove(sandboxID);
});

test('the port of the agent may be left out, other ports not be guessed', async () => {
  const { sandboxID } = await created({});
  expect((await curl('/health', '-H', `Svc-Sandbox-Id: ${sandboxID}`)).status).toBe(204);
  const closed = await curl('/', '-H', `Svc-Sandbox-Id: ${sandboxID}`, '-H', 'Svc-Sandbox-Port: 9');
  expect(closed.status).toBe(502);
  expect(JSON.parse(closed.body)).toEqual({
    sandboxId: sandboxID,
    message: 'The sandbox is running but port is not open',
    port: 9,
    code: 502,
  });
  await remove(sandboxID);
  const gone = await curl('/health', '-H', `Svc-Sandbox-Id: ${sandboxID}`);
  expect(JSON.parse(gone.body)).toMatchObject({ message: 'The sandbox was not found', code: 502 });
});

test('templates are listed, the base template among them', async () => {
  const { status, body } = await curl('/templates', ...key());
  expect(status).toBe(200);
  expect(JSON.parse(body)).toContainEqual(
    expect.objectContaining({ aliases: ['base'], public: true, buildStatus: 'ready' }),
  );
});

const refused: [string, number, string[], string][] = [
  ['no key', 401, ['-X', 'POST'], '/sandboxes'],
  ['a wrong key', 401, ['-H', `X-API-Key: e2b_${'0'.repeat(40)}`], '/sandboxes'],
  ['a malformed key', 401, ['-H', 'X-API-Key: nonsense'], '/templates'],
  ['an unknown sandbox', 404, [], '/sandboxes/i00000000000000000000'],
  ['a malformed sandbox ID', 400, [], '/sandboxes/Not_An_Id'],
  ['an unknown template', 404, json({ templateID: 'no-such-template' }), '/sandboxes'],
  ['no template', 400, json({}), '/sandboxes'],
  ['a negative timeout', 400, json({ templateID: 'base', timeout: -1 }), '/sandboxes'],
  ['a timeout of zero', 400, json({ templateID: 'base', timeout: 0 }), '/sandboxes'],
  ['a timeout that is too long', 400, json({ templateID: 'base', timeout: 100_000_000 }), '/sandboxes'],
  ['a timeout of the wrong type', 400, json({ templateID: 'base', timeout: 'long' }), '/sandboxes'],
  ['a body that is no JSON', 400, ['-H', 'Content-Type: application/json', '-d', '{'], '/sandboxes'],
  ['an unknown route', 404, [], '/no/such/route'],
];

for (const [what, status, args, path] of refused) {
  test(`${what} is answered with ${status} and the error’s body, and makes nothing`, async () => {
    const withKey = status === 401 ? args : [...key(), ...args];
    const answer = await curl(path, ...withKey);
    expect(answer).toMatchObject({ status, type: expect.stringContaining('application/json') });
    expect(JSON.parse(answer.body)).toMatchObject({ code: status, message: expect.any(String) });
    expect(JSON.parse((await curl('/sandboxes', ...key())).body)).toEqual([]);
  });
}
