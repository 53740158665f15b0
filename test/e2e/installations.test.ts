import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { runToEnd, waitFor } from '../support/process.ts';
import { testUnless } from '../support/skip.ts';

let folder: string;
/** A platform for the tests that examine others: starting one takes longer than most of them. */
let shared: TestPlatform;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'atoll-installations-'));
  shared = await startPlatform({ ATOLL_TLS_PORT: '0' });
}, 120_000);
afterAll(async () => {
  await shared?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
}, 120_000);

const atoll = (platform: TestPlatform, ...args: string[]) =>
  runToEnd([join(repository, 'bin/atoll'), ...args], { env: platform.env });
const create = (platform: TestPlatform) => platform.api('POST', '/sandboxes', { templateID: 'base', timeout: 60 });
const file = async (platform: TestPlatform, id: string, path: string) =>
  (
    await fetch(`${platform.ready.url}/files?path=${path}`, {
      headers: { 'Svc-Sandbox-Id': id, 'Svc-Sandbox-Port': '49983' },
    })
  ).text();

async function created(platform: TestPlatform): Promise<string> {
  const response = await create(platform);
  expect(response.status).toBe(201);
  return ((await response.json()) as { sandboxID: string }).sandboxID;
}

test('two installations on one machine know nothing of each other', async () => {
  await using first = await startPlatform();
  await using second = await startPlatform();
  const [here, there] = [await created(first), await created(second)];
  expect((await second.api('GET', `/sandboxes/${here}`)).status).toBe(404);
  expect((await fetch(`${second.ready.url}/sandboxes`, { headers: { 'X-API-Key': first.ready.apiKey } })).status).toBe(
    401,
  );
  // Taking one down, and starting it again, leaves the other one's sandbox alone.
  expect((await atoll(first, 'down', '--all')).exitCode).toBe(0);
  await first.restart();
  expect((await first.api('GET', `/sandboxes/${here}`)).status).toBe(404);
  expect(await file(second, there, '/etc/hostname')).not.toBe('');
}, 120_000);

test('one data directory has one platform', async () => {
  const platform = shared;
  const other = await runToEnd([join(repository, 'bin/atoll'), 'up'], { env: { ...platform.env, ATOLL_PORT: '0' } });
  expect(other).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('ATOLL_DATA_DIR') });
  await created(platform);
}, 120_000);

test('the base template is made from an archive where one is named', async () => {
  const archive = join(folder, 'image.tar.gz');
  const tree = join(folder, 'tree');
  await runToEnd(['mkdir', '-p', join(tree, 'etc'), join(tree, 'home/user'), join(tree, 'bin')]);
  await writeFile(join(tree, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n');
  await writeFile(join(tree, 'etc/note'), 'from the archive');
  expect((await runToEnd(['tar', '-czf', archive, '-C', tree, '.'])).exitCode).toBe(0);
  await using platform = await startPlatform({ ATOLL_BASE_IMAGE: archive, ATOLL_CACHE_DIR: join(folder, 'cache') });
  expect(await file(platform, await created(platform), '/etc/note')).toBe('from the archive');
}, 120_000);

test('the command line lists, ends and revokes on the running platform', async () => {
  await using platform = await startPlatform();
  const id = await created(platform);
  expect((await atoll(platform, 'sandbox', 'list')).stdout).toContain(id);
  expect((await atoll(platform, 'template', 'list')).stdout).toContain('base');
  expect((await atoll(platform, 'sandbox', 'kill', id)).exitCode).toBe(0);
  expect(await atoll(platform, 'sandbox', 'kill', id)).toMatchObject({ exitCode: 1 });

  const key = (await atoll(platform, 'key', 'create', '--name', 'second')).stdout.trim();
  expect(key).toMatch(/^e2b_[0-9a-f]{40}$/);
  const status = async () => (await fetch(`${platform.ready.url}/sandboxes`, { headers: { 'X-API-Key': key } })).status;
  expect(await status()).toBe(200);
  const keys = JSON.parse((await atoll(platform, 'key', 'list', '--json')).stdout) as { id: string; name: string }[];
  expect(JSON.stringify(keys)).not.toContain(key.slice(4));
  await atoll(platform, 'key', 'revoke', keys.find(({ name }) => name === 'second')?.id ?? '');
  expect(await status()).toBe(401);

  // The command line is the operator's: it needs no key of the team, and all team keys can be revoked.
  const last = await created(platform);
  for (const { id, name } of keys) if (name !== 'second') await atoll(platform, 'key', 'revoke', id);
  expect((await platform.api('GET', '/sandboxes')).status).toBe(401);
  expect((await atoll(platform, 'sandbox', 'list')).stdout).toContain(last);
  for (const command of [
    ['template', 'list'],
    ['volume', 'list'],
    ['sandbox', 'kill', last],
  ]) {
    const outcome = await atoll(platform, ...command);
    expect({ command, ...outcome }).toMatchObject({ exitCode: 0, stderr: expect.not.stringContaining('credential') });
  }
}, 120_000);

test('teams, users, keys and tokens are made, listed, renamed and revoked on the machine, and each change says by whom', async () => {
  const platform = shared;
  const done = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await atoll(platform, ...args);
    expect({ args, exitCode, stderr: exitCode === 0 ? '' : stderr }).toEqual({ args, exitCode: 0, stderr: '' });
    return stdout.trim();
  };
  const status = async (headers: Record<string, string>, path = '/sandboxes') =>
    (await fetch(`${platform.ready.url}${path}`, { headers })).status;
  const made = async (...args: string[]) => JSON.parse(await done(...args, '--json')) as Record<string, string>;
  expect(await made('team', 'create', 'blue', 'Blue')).toEqual({
    teamID: expect.any(String),
    slug: 'blue',
    name: 'Blue',
  });
  await done('team', 'rename', 'blue', 'Azure');
  const { id: madeId, key = '' } = await made('key', 'create', '--team', 'blue', '--name', 'one');
  const { userID: userId = '' } = await made('user', 'create', 'Ann', '--email', 'ann@example.com');
  await done('user', 'join', userId, 'blue');
  const { id: tokenId = '', token } = await made('token', 'create', userId, '--name', 'laptop');
  expect(
    await (await fetch(`${platform.ready.url}/teams`, { headers: { Authorization: `Bearer ${token}` } })).json(),
  ).toMatchObject([{ name: 'Azure', isDefault: true }]);
  expect(await status({ 'X-API-Key': key })).toBe(200);
  const [{ id: keyId } = { id: '' }] = JSON.parse(await done('key', 'list', '--team', 'blue', '--json')) as {
    id: string;
  }[];
  expect(keyId).toBe(madeId!);
  await done('key', 'rename', keyId, 'two', '--team', 'blue');
  expect(await done('key', 'list', '--team', 'blue')).toContain('two');
  await done('key', 'revoke', keyId, '--team', 'blue');
  expect(await status({ 'X-API-Key': key })).toBe(401);
  const tokens = JSON.parse(await done('token', 'list', userId, '--json')) as { id: string; name: string }[];
  expect(tokens.map(({ id, name }) => [id, name])).toEqual([[tokenId, 'laptop']]);
  await done('token', 'revoke', userId, tokenId);
  expect(await status({ Authorization: `Bearer ${token}` }, '/teams')).toBe(401);
  await done('user', 'leave', userId, 'blue');
  expect(JSON.parse(await done('team', 'list', '--json'))).toContainEqual(
    expect.objectContaining({ slug: 'blue', name: 'Azure', teamID: expect.any(String) }),
  );
  expect(await done('user', 'list')).toContain('ann@example.com');
  expect(JSON.parse(await done('user', 'list', '--json'))).toMatchObject([{ userID: userId, name: 'Ann' }]);
  expect(await atoll(platform, 'key', 'revoke', keyId, '--team', 'nobody')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('no team nobody'),
  });

  const admin = { 'X-Admin-Token': (await Bun.file(join(platform.ready.dataDir, 'admin-token')).text()).trim() };
  const entries = (await (await fetch(`${platform.ready.url}/admin/audit`, { headers: admin })).json()) as {
    operation: string;
    actor: { kind: string; id: string };
  }[];
  const local = entries.filter(({ operation }) => operation.startsWith('cli.'));
  expect(local.map(({ operation }) => operation)).toEqual(
    [
      'user.leave',
      'token.revoke',
      'key.revoke',
      'key.rename',
      'token.create',
      'user.join',
      'user.create',
      'key.create',
      'team.rename',
      'team.create',
    ].map(name => `cli.${name}`),
  );
  expect(local.every(({ actor }) => actor.kind === 'local' && actor.id !== '')).toBe(true);
  expect(JSON.stringify(entries)).not.toContain(key.slice(4));
}, 120_000);

test('the TLS port serves API and sandboxes to whoever trusts the installation’s authority', async () => {
  const platform = shared;
  const { url = '', authorityFile } = platform.ready.tls ?? {};
  const ca = await Bun.file(authorityFile ?? '').text();
  const id = await created(platform);
  const headers = { 'X-API-Key': platform.ready.apiKey };
  expect((await fetch(`${url}/sandboxes/${id}`, { headers, tls: { ca } })).status).toBe(200);
  expect(
    (await fetch(`${url}/health`, { headers: { 'Svc-Sandbox-Id': id, 'Svc-Sandbox-Port': '49983' }, tls: { ca } }))
      .status,
  ).toBe(204);
  await expect(fetch(`${url}/health`)).rejects.toThrow();
}, 120_000);

const noIPv6 = Object.values(networkInterfaces())
  .flat()
  .some(each => each?.address === '::1')
  ? undefined
  : 'this machine has no IPv6';
testUnless(noIPv6)(
  'clients come by IPv6 where the host has it: to the API, agents and services',
  async () => {
    await using platform = await startPlatform({ ATOLL_HOST: '::1' });
    const { url, domain } = platform.ready;
    expect(url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    const id = await created(platform);
    const health = await fetch(`${url}/health`, { headers: { 'Svc-Sandbox-Id': id, 'Svc-Sandbox-Port': '49983' } });
    expect(health.status).toBe(204);
    const line =
      'mkdir web && echo shown > web/index.html; python3 -m http.server --bind ::1 --directory web 8000 >/dev/null 2>&1 &';
    expect(await atoll(platform, 'sandbox', 'exec', id, line)).toMatchObject({ exitCode: 0 });
    // The service listens only on the sandbox's IPv6 loopback.
    const shown = await waitFor('the service', async () => {
      const answer = await fetch(`${url}/index.html`, { headers: { host: `8000-${id}.${domain}` } });
      return answer.ok && (await answer.text());
    });
    expect(shown).toBe('shown\n');
  },
  120_000,
);

test('rules for outgoing traffic are kept and shown', async () => {
  const platform = shared;
  const network = { denyOut: ['203.0.113.0/24'], allowOut: ['203.0.113.7'] };
  const response = await platform.api('POST', '/sandboxes', { templateID: 'base', timeout: 60, network });
  expect(response.status).toBe(201);
  const { sandboxID } = (await response.json()) as { sandboxID: string };
  expect(await (await platform.api('GET', `/sandboxes/${sandboxID}`)).json()).toMatchObject({ network });
}, 120_000);
