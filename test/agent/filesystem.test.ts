import { beforeAll, expect, test } from 'bun:test';
import {
  chmodSync,
  chownSync,
  existsSync,
  lutimesSync,
  mkdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { finish, outputUntil, shell, start, startedPid } from './support/process.ts';
import { unary, unaryError } from './support/rpc.ts';
import { sharedAgent } from './support/shared-agent.ts';
import { addUser, as } from './support/users.ts';

const agent = sharedAgent({ init: { defaultUser: 'someone' } });
beforeAll(() => addUser(agent, 'someone', 4321));

type Entry = {
  name: string;
  path: string;
  type?: string;
  permissions?: string;
  owner?: string;
  group?: string;
  mode?: number;
  size?: string;
  symlinkTarget?: string;
  isSymlink?: boolean;
  modifiedTime?: string;
};

const call = (method: string, message: unknown, headers = {}) =>
  unary(agent, `filesystem.Filesystem/${method}`, message, headers);
const error = (method: string, message: unknown, headers = {}) =>
  unaryError(agent, `filesystem.Filesystem/${method}`, message, headers);
const stat = async (path: string) => (await call('Stat', { path })).body['entry'] as Entry;
const list = async (path: string, depth?: number) =>
  ((await call('ListDir', { path, ...(depth === undefined ? {} : { depth }) })).body['entries'] ?? []) as Entry[];
const inside = (path: string) => agent.path(path);

test('a file is described in full', async () => {
  writeFileSync(inside('/home/someone/file.txt'), 'twelve bytes');
  chmodSync(inside('/home/someone/file.txt'), 0o640);
  chownSync(inside('/home/someone/file.txt'), 4321, 0);
  lutimesSync(inside('/home/someone/file.txt'), 1_700_000_000.25, 1_700_000_000.25);
  expect(await stat('file.txt')).toEqual({
    name: 'file.txt',
    type: 'FILE_TYPE_FILE',
    path: '/home/someone/file.txt',
    size: '12',
    mode: 0o640,
    permissions: '-rw-r-----',
    owner: 'someone',
    group: 'root',
    modifiedTime: '2023-11-14T22:13:20.250Z',
  });
});

test('members at their default value are left out', async () => {
  writeFileSync(inside('/tmp/empty'), '');
  chmodSync(inside('/tmp/empty'), 0);
  const entry = await stat('/tmp/empty');
  expect(entry).not.toHaveProperty('size');
  expect(entry).not.toHaveProperty('mode');
  expect(entry.permissions).toBe('----------');
});

test.each([
  ['a directory', 'mkdir -m 750 KIND', { type: 'FILE_TYPE_DIRECTORY', permissions: 'drwxr-x---', mode: 0o750 }],
  [
    'a sticky directory',
    'mkdir -m 1777 KIND',
    { type: 'FILE_TYPE_DIRECTORY', permissions: 'dtrwxrwxrwx', mode: 0o777 },
  ],
  [
    'a setuid program',
    'touch KIND; chmod 4755 KIND',
    { type: 'FILE_TYPE_FILE', permissions: 'urwxr-xr-x', mode: 0o755 },
  ],
  [
    'a setgid program',
    'touch KIND; chmod 2755 KIND',
    { type: 'FILE_TYPE_FILE', permissions: 'grwxr-xr-x', mode: 0o755 },
  ],
  ['a named pipe', 'mkfifo -m 600 KIND', { type: undefined, permissions: 'prw-------' }],
  ['a character device', 'cp -a /dev/null KIND', { type: undefined }],
])('%s shows by type and permissions', async (kind, make, expected) => {
  const path = `/tmp/kind-${kind.replaceAll(' ', '-')}`;
  await shell(agent, make.replaceAll('KIND', path), { headers: as('root') });
  expect(await stat(path)).toMatchObject(
    Object.fromEntries(Object.entries(expected).filter(([, value]) => value !== undefined)),
  );
  if (expected.type === undefined) expect(await stat(path)).not.toHaveProperty('type');
});

test('a device is a device', async () => {
  expect((await stat('/dev/null')).permissions).toBe('Dcrw-rw-rw-');
  expect((await stat('/dev/null')).type).toBeUndefined();
});

test('a link shows its target’s type and mode and its own size', async () => {
  mkdirSync(inside('/tmp/links/target'), { recursive: true });
  chmodSync(inside('/tmp/links/target'), 0o711);
  symlinkSync('target', inside('/tmp/links/to-directory'));
  symlinkSync('to-directory', inside('/tmp/links/twice'));
  symlinkSync('nowhere', inside('/tmp/links/broken'));
  expect(await stat('/tmp/links/twice')).toMatchObject({
    type: 'FILE_TYPE_DIRECTORY',
    permissions: 'Lrwxrwxrwx',
    mode: 0o711,
    size: '12',
    symlinkTarget: '/tmp/links/target',
    isSymlink: true,
  });
  const broken = await stat('/tmp/links/broken');
  expect(broken).toMatchObject({ symlinkTarget: '/tmp/links/nowhere', permissions: 'Lrwxrwxrwx' });
  expect(broken).not.toHaveProperty('type');
});

test('owners without a name are numbers', async () => {
  writeFileSync(inside('/tmp/foreign'), '');
  chownSync(inside('/tmp/foreign'), 5555, 6666);
  expect(await stat('/tmp/foreign')).toMatchObject({ owner: '5555', group: '6666' });
});

test('paths mean what they say: home, tilde, absolute as given', async () => {
  mkdirSync(inside('/home/someone/paths'), { recursive: true });
  expect((await stat('paths')).path).toBe('/home/someone/paths');
  expect((await stat('~/paths')).path).toBe('/home/someone/paths');
  expect((await stat('./x/../paths')).path).toBe('/home/someone/paths');
  expect((await stat('~')).path).toBe('/home/someone');
  expect((await stat('')).path).toBe('/home/someone');
  expect((await stat('/home//someone/paths')).path).toBe('/home//someone/paths');
  expect(await error('Stat', { path: '~root/x' })).toBe('400 invalid_argument');
  expect(((await call('Stat', { path: '' }, as('root'))).body['entry'] as Entry).path).toBe('/root');
});

test('what is not there is not found; unknown users are refused', async () => {
  expect(await error('Stat', { path: '/no/such' })).toBe('404 not_found');
  expect(await error('Stat', { path: '/etc/passwd/below' })).toBe('404 not_found');
  expect(await error('Stat', { path: `/${'x'.repeat(5000)}` })).toBe('400 invalid_argument');
  expect(await error('Stat', { path: 5 })).toBe('400 invalid_argument');
  expect(await error('Stat', { path: '/' }, as('stranger'))).toBe('401 unauthenticated');
});

test('directories are made with all above them, as the user’s', async () => {
  expect((await call('MakeDir', { path: 'made/one/two' })).body['entry'] as Entry).toMatchObject({
    path: '/home/someone/made/one/two',
    permissions: 'drwxr-xr-x',
    owner: 'someone',
  });
  for (const path of ['made', 'made/one', 'made/one/two'])
    expect(statSync(inside(`/home/someone/${path}`)).uid).toBe(4321);
  expect(await error('MakeDir', { path: 'made/one' })).toBe('409 already_exists');
  symlinkSync('one', inside('/home/someone/made/link'));
  expect(await error('MakeDir', { path: 'made/link' })).toBe('409 already_exists');
  writeFileSync(inside('/home/someone/made/file'), '');
  expect(await error('MakeDir', { path: 'made/file' })).toBe('400 invalid_argument');
  expect(await error('MakeDir', { path: 'made/file/below' })).toBe('500 internal');
});

test('a directory below a link that leads nowhere is refused, and not tried for ever', async () => {
  symlinkSync('releases/5', agent.path('/home/someone/current'));
  expect(await error('MakeDir', { path: 'current/logs' })).toBe('500 internal');
});

test('what can not be described in full does not end the agent with the list that it is in', async () => {
  const pid = agent.agentPid();
  await shell(agent, 'mkdir /dev/shm/times; touch -d @9999999999999 /dev/shm/times/a /dev/shm/times/b');
  const times = (await list('/dev/shm/times')).map(({ modifiedTime }) => modifiedTime);
  expect(times).toEqual(['9999-12-31T23:59:59Z', '9999-12-31T23:59:59Z']);
  const names = (await list('/proc/1')).map(({ name }) => name);
  expect(names).toContain('exe');
  expect(agent.agentPid()).toBe(pid);
});

test('one entry that can not be looked into does not take the list of all others', async () => {
  // The shell's child ends once the shell has become a program that does not wait for it: proc then refuses to list its
  // network.
  const child = 'until grep -q sleep /proc/$PPID/comm; do sleep 0.01; done';
  const events = await start(agent, {
    process: { cmd: '/bin/sh', args: ['-c', `sh -c '${child}' & echo $!; exec sleep 1000`] },
  });
  const parent = await startedPid(events);
  const zombie = (await outputUntil(events, '\n')).trim();
  const state = async () => (await Bun.file(inside(`/proc/${zombie}/stat`)).text()).replace(/.*\) /, '')[0];
  while ((await state()) !== 'Z') await Bun.sleep(5);
  const paths = (await list(`/proc/${zombie}`, 2)).map(({ path }) => path);
  expect(paths).toContain(`/proc/${zombie}/net`);
  expect(paths).toContain(`/proc/${zombie}/task/${zombie}`);
  await unary(agent, 'process.Process/SendSignal', { process: { pid: parent }, signal: 'SIGNAL_SIGKILL' });
  await finish(events);
});

test('very old clients get short entries, and links are not entered for them either', async () => {
  mkdirSync(inside('/tmp/old/folder'), { recursive: true });
  symlinkSync('folder', inside('/tmp/old/link'));
  writeFileSync(inside('/tmp/old/folder/file'), '');
  const { body } = await call('ListDir', { path: '/tmp/old', depth: 3 }, { 'user-agent': 'connect-python' });
  expect(body['entries']).toEqual([
    { name: 'folder', type: 'FILE_TYPE_DIRECTORY', path: '/tmp/old/folder' },
    { name: 'file', type: 'FILE_TYPE_FILE', path: '/tmp/old/folder/file' },
    { name: 'link', type: 'FILE_TYPE_DIRECTORY', path: '/tmp/old/link' },
  ]);
});

test('moving renames, replaces files, makes parents, and refuses full directories', async () => {
  mkdirSync(inside('/tmp/move/full'), { recursive: true });
  mkdirSync(inside('/tmp/move/directory'), { recursive: true });
  writeFileSync(inside('/tmp/move/full/entry'), '');
  writeFileSync(inside('/tmp/move/a'), 'a');
  writeFileSync(inside('/tmp/move/b'), 'b');
  expect((await call('Move', { source: '/tmp/move/a', destination: '/tmp/move/b' })).body['entry']).toMatchObject({
    name: 'b',
    size: '1',
  });
  expect(await Bun.file(inside('/tmp/move/b')).text()).toBe('a');
  expect((await call('Move', { source: '/tmp/move/b', destination: '/tmp/move/new/parents/b' })).status).toBe(200);
  expect(statSync(inside('/tmp/move/new/parents')).uid).toBe(4321);
  expect(await error('Move', { source: '/tmp/move/directory', destination: '/tmp/move/full' })).toBe('500 internal');
  expect(await error('Move', { source: '/tmp/move/gone', destination: '/tmp/move/x' })).toBe('404 not_found');
  expect(existsSync(inside('/tmp/move/x'))).toBe(false);
  symlinkSync('/etc', inside('/tmp/move/link'));
  await call('Move', { source: '/tmp/move/link', destination: '/tmp/move/moved-link' });
  expect((await stat('/tmp/move/moved-link')).symlinkTarget).toBe('/etc');
  expect(await error('Move', { source: '/tmp/move/moved-link', destination: '/home/someone/other-mount' })).toBe(
    '500 internal',
  );
});

test('what a move or a name can not be is told in words', async () => {
  for (const path of ['directory', 'full/of']) mkdirSync(inside(`/tmp/words/${path}`), { recursive: true });
  const told = async (method: string, request: object) => (await call(method, request)).body['message'];
  expect(await told('Move', { source: '/tmp/words/directory', destination: '/tmp/words/full' })).toBe(
    "path '/tmp/words/full' is a directory that is not empty",
  );
  expect(await told('Move', { source: '/tmp/words/directory', destination: '/home/someone/other-mount/x' })).toMatch(
    /^path '.*' is on another file system/,
  );
  expect(await told('Stat', { path: `/tmp/${'n'.repeat(256)}` })).toMatch(/a name in it than 255$/);
});

test('removing takes whole trees, never follows links, and is fine with nothing', async () => {
  mkdirSync(inside('/tmp/remove/deep/er'), { recursive: true });
  mkdirSync(inside('/tmp/kept'), { recursive: true });
  writeFileSync(inside('/tmp/kept/file'), 'kept');
  writeFileSync(inside('/tmp/remove/deep/er/file'), '');
  symlinkSync('/tmp/kept', inside('/tmp/remove/deep/link'));
  symlinkSync('/tmp/kept', inside('/tmp/link-itself'));
  for (const path of ['/tmp/remove', '/tmp/link-itself', '/tmp/never-there'])
    expect((await call('Remove', { path })).body).toEqual({});
  expect(existsSync(inside('/tmp/remove'))).toBe(false);
  expect(await Bun.file(inside('/tmp/kept/file')).text()).toBe('kept');
});

test('a tree deeper than a path can name is removed', async () => {
  // Each hundred levels are moved below the next hundred.
  const hundred = Array.from({ length: 99 }, () => 'long-enough').join('/');
  await shell(
    agent,
    `mkdir -p /tmp/deep; cd /tmp/deep; for k in $(seq 15); do mkdir -p c$k/${hundred}; [ $k = 1 ] || mv c$((k-1)) c$k/${hundred}/; done; touch c15/file`,
  );
  expect((await call('Remove', { path: '/tmp/deep' })).status).toBe(200);
  expect(existsSync(inside('/tmp/deep'))).toBe(false);
});

test('listing goes as deep as asked, depth first, in byte order', async () => {
  for (const folder of ['b/inner', 'B', 'a.d', 'ä']) mkdirSync(inside(`/tmp/list/${folder}`), { recursive: true });
  for (const file of ['b/inner/leaf', 'b/z', 'a', 'a.d/x']) writeFileSync(inside(`/tmp/list/${file}`), '');
  const names = async (depth?: number) =>
    (await list('/tmp/list', depth)).map(entry => entry.path.slice('/tmp/list/'.length));
  expect(await names()).toEqual(['B', 'a', 'a.d', 'b', 'ä']);
  expect(await names(0)).toEqual(['B', 'a', 'a.d', 'b', 'ä']);
  expect(await names(2)).toEqual(['B', 'a', 'a.d', 'a.d/x', 'b', 'b/inner', 'b/z', 'ä']);
  expect(await names(9)).toEqual(['B', 'a', 'a.d', 'a.d/x', 'b', 'b/inner', 'b/inner/leaf', 'b/z', 'ä']);
  expect((await call('ListDir', { path: '/tmp/list/B' })).body).toEqual({});
});

test('a listed link is followed at the top only, and paths begin as asked', async () => {
  mkdirSync(inside('/tmp/linked/real/below'), { recursive: true });
  symlinkSync('real', inside('/tmp/linked/link'));
  symlinkSync('..', inside('/tmp/linked/real/up'));
  expect((await list('/tmp/linked/link', 5)).map(entry => entry.path)).toEqual([
    '/tmp/linked/link/below',
    '/tmp/linked/link/up',
  ]);
  symlinkSync('round', inside('/tmp/linked/round'));
  expect(await error('ListDir', { path: '/tmp/linked/round' })).toBe('400 failed_precondition');
  expect(await error('ListDir', { path: '/etc/passwd' })).toBe('400 invalid_argument');
  expect(await error('ListDir', { path: '/tmp/none' })).toBe('404 not_found');
});

test('names that are no UTF-8 are listed with what they describe', async () => {
  await shell(agent, 'mkdir /tmp/bytes; printf data > "$(printf \'/tmp/bytes/odd-\\377\')"');
  const [entry] = await list('/tmp/bytes');
  expect(entry).toMatchObject({ name: 'odd-\ufffd', size: '4' });
});

test('a directory of 20 000 entries is listed whole while it changes', async () => {
  await shell(agent, 'mkdir /tmp/many; cd /tmp/many; seq 20000 | xargs touch');
  const churning = shell(agent, 'cd /tmp/many; for i in $(seq 300); do touch x$i; rm x$i; done');
  const stable = (await list('/tmp/many')).filter(entry => !entry.name.startsWith('x'));
  await churning;
  expect(stable.length).toBe(20_000);
});

test('a very old client gets short entries', async () => {
  const { body } = await call('Stat', { path: '/etc/passwd' }, { 'user-agent': 'connect-python' });
  expect(body['entry']).toEqual({ name: 'passwd', type: 'FILE_TYPE_FILE', path: '/etc/passwd' });
});
