import { beforeAll, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { shell } from './support/process.ts';
import { unary } from './support/rpc.ts';
import { sharedAgent } from './support/shared-agent.ts';
import { addUser } from './support/users.ts';

// The home directory is on a tmpfs, which keeps user attributes since Linux 6.6.
const agent = sharedAgent({ init: { defaultUser: 'someone' } });
beforeAll(() => addUser(agent, 'someone', 4321));

type Written = { path: string; metadata?: Record<string, string> };

async function put(path: string, metadata: Record<string, string>): Promise<{ status: number; body: Written[] }> {
  const headers = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`X-Metadata-${key}`, value]));
  const response = await fetch(`${agent.url}/files?path=${path}`, {
    method: 'POST',
    body: 'x',
    headers: { 'content-type': 'application/octet-stream', ...headers },
  });
  return { status: response.status, body: (await response.json()) as Written[] };
}

const stored = async (path: string) =>
  ((await unary(agent, 'filesystem.Filesystem/Stat', { path })).body['entry'] as Written).metadata;

test('metadata is kept with the file and shown everywhere', async () => {
  const { status, body } = await put('meta.txt', { Author: 'somebody', 'Build-Id': '42, second' });
  const metadata = { author: 'somebody', 'build-id': '42, second' };
  expect({ status, metadata: body[0]?.metadata }).toEqual({ status: 200, metadata });
  expect(await stored('meta.txt')).toEqual(metadata);
  const { body: listed } = await unary(agent, 'filesystem.Filesystem/ListDir', { path: '' });
  expect((listed['entries'] as Written[]).find(({ path }) => path.endsWith('meta.txt'))?.metadata).toEqual(metadata);
});

test('an upload replaces all of it', async () => {
  await put('replaced', { a: '1', b: '2' });
  await put('replaced', { b: '3' });
  expect(await stored('replaced')).toEqual({ b: '3' });
  expect((await put('replaced', {})).body[0]).not.toHaveProperty('metadata');
  expect(await stored('replaced')).toBeUndefined();
});

test('names that objects have of their own are names like others', async () => {
  const named = (value: string) => Object.fromEntries([['__proto__', value]]);
  expect((await put('own', { ...named('1'), constructor: '2' })).body[0]?.metadata).toEqual({
    ...named('1'),
    constructor: '2',
  });
  await put('own', { ...named('3') });
  expect(await stored('own')).toEqual(named('3'));
});

test.each([
  ['a value beyond ASCII', { key: 'ü' }],
  ['a key that is too long', { ['k'.repeat(247)]: 'v' }],
  ['too much of it', { a: 'x'.repeat(2100), b: 'y'.repeat(2100) }],
])('%s is refused before anything is written', async (_, metadata) => {
  writeFileSync(agent.path('/home/someone/unharmed'), 'as before');
  const headers = Object.fromEntries(
    Object.entries(metadata).map(([key, value]) => [`x-metadata-${key}`, Buffer.from(value).toString('latin1')]),
  );
  const response = await fetch(`${agent.url}/files?path=unharmed`, {
    method: 'POST',
    body: 'x',
    headers: { 'content-type': 'application/octet-stream', ...headers },
  });
  expect(response.status).toBe(400);
  expect(readFileSync(agent.path('/home/someone/unharmed'), 'utf8')).toBe('as before');
});

test('as much as is allowed is kept', async () => {
  const value = 'x'.repeat(4096 - 'user.e2b.'.length - 1);
  expect((await put('full', { k: value })).status).toBe(200);
  expect(await stored('full')).toEqual({ k: value });
});

test('where the file system keeps none, the file is written all the same', async () => {
  const asRoot = { headers: { authorization: `Basic ${btoa('root:')}` } };
  expect(
    (await shell(agent, 'mkdir /tmp/ramfs && mount -t ramfs none /tmp/ramfs && chmod 777 /tmp/ramfs', asRoot)).error,
  ).toBeUndefined();
  const { status, body } = await put('/tmp/ramfs/file', { key: 'value' });
  expect({ status, metadata: body[0]?.metadata }).toEqual({ status: 200, metadata: undefined });
});
