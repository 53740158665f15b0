import { afterEach, beforeEach, expect, test } from 'bun:test';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Call } from '../connect/call.ts';
import { openNative, type Native } from '../native.ts';
import { makeDirectories, makeParents } from './directories.ts';
import type { EntryInfo } from './entry-info.ts';
import { listDirectory } from './list.ts';
import { openFilesystem, type FilesystemHost } from './operations.ts';

let folder = '';
let logged: unknown[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-agent-operations-'));
  logged = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

/** The agent's init, as far as used here: the program that removes trees. */
function initThat(does: string): string {
  const path = join(folder, '.init');
  writeFileSync(path, `#!/bin/sh\n${does}\n`, { mode: 0o755 });
  return path;
}

/** Calls an operation with paths below the folder. */
async function ask(name: string, message: object, { short = false, initPath = '/nowhere' } = {}): Promise<object> {
  const agent = {
    native: openNative(),
    initPath,
    journal: { add: (...[, , , fields]: unknown[]) => void logged.push(fields) },
    settings: () => ({ defaultUser: 'root', defaultWorkdir: folder }),
  } as unknown as FilesystemHost;
  const operation = openFilesystem(agent).unary[name];
  if (!operation) throw new Error(`there is no ${name}`);
  return operation(message as never, { username: '', wantsShortEntries: short } as unknown as Call);
}

const at = (name: string) => join(folder, name);
const entryOf = async (name: string) =>
  ((await ask('Stat', { path: name === '' ? '' : at(name) })) as { entry: EntryInfo }).entry;
const namesOf = async (message: object) => {
  const { entries = [] } = (await ask('ListDir', message)) as { entries?: EntryInfo[] };
  return entries.map(({ path }) => path.slice(folder.length + 1));
};
const error = (code: string, message: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(message) }) as unknown;

test('a file is described with all that its kernel knows, and nothing that is at its default', async () => {
  writeFileSync(at('full'), 'content');
  chmodSync(at('full'), 0o640);
  utimesSync(at('full'), 1_000_000_000, 1_000_000_000.5);
  const described = { path: at('full'), name: 'full', type: 'FILE_TYPE_FILE', owner: 'root', group: 'root' };
  const facts = { size: '7', mode: 0o640, permissions: '-rw-r-----', modifiedTime: '2001-09-09T01:46:40.500Z' };
  expect(await entryOf('full')).toEqual({ ...described, ...facts } as EntryInfo);
  writeFileSync(at('empty'), '');
  chmodSync(at('empty'), 0);
  chownSync(at('empty'), 54_321, 54_322);
  utimesSync(at('empty'), 5, 5);
  expect(await entryOf('empty')).toEqual({
    ...{ path: at('empty'), name: 'empty', type: 'FILE_TYPE_FILE', permissions: '----------' },
    ...{ owner: '54321', group: '54322', modifiedTime: '1970-01-01T00:00:05Z' },
  });
  // An empty path is the default directory; the root's name is its path.
  expect(await entryOf('')).toMatchObject({ path: folder, type: 'FILE_TYPE_DIRECTORY', permissions: 'drwx------' });
  expect(await ask('Stat', { path: '/' })).toMatchObject({ entry: { name: '/' } });
});

test('permissions are written as Go writes them', async () => {
  let server: Server | undefined;
  Bun.spawnSync(['mkfifo', '-m', '600', at('pipe')]);
  mkdirSync(at('sticky'));
  chmodSync(at('sticky'), 0o1777);
  writeFileSync(at('bits'), '');
  chmodSync(at('bits'), 0o6711);
  await new Promise<void>(resolve => (server = createServer().listen(at('socket'), resolve)));
  chmodSync(at('socket'), 0o700);
  try {
    const permissions = await Promise.all(
      ['sticky', 'bits', 'pipe', 'socket'].map(async name => (await entryOf(name)).permissions),
    );
    expect(permissions).toEqual(['dtrwxrwxrwx', 'ugrwx--x--x', 'prw-------', 'Srwx------']);
    expect(await ask('Stat', { path: '/dev/null' })).toMatchObject({ entry: { permissions: 'Dcrw-rw-rw-' } });
    expect((await entryOf('pipe')).type).toBeUndefined();
  } finally {
    server?.close();
  }
});

test('a time that protobuf can’t tell is the nearest that it can', async () => {
  // This file system keeps any time, unlike most on a disk.
  await using shared = await mkdtempDisposable('/dev/shm/atoll-agent-operations-');
  const path = join(shared.path, 'file');
  for (const [seconds, told] of [
    [-0.25, '1969-12-31T23:59:59.750Z'],
    [-1, '1969-12-31T23:59:59Z'],
    [1e9 + 0.125, '2001-09-09T01:46:40.125Z'],
    ['0.000123', '1970-01-01T00:00:00.000123Z'],
    ['0.100000023', '1970-01-01T00:00:00.100000023Z'],
    [-62_135_596_800, '0001-01-01T00:00:00Z'],
    [-62_135_596_801, '0001-01-01T00:00:00Z'],
    ['253402300799.5', '9999-12-31T23:59:59.500Z'],
    [253_402_300_800, '9999-12-31T23:59:59Z'],
  ] as const) {
    expect(Bun.spawnSync(['touch', '-d', `@${seconds}`, path]).exitCode).toBe(0);
    expect(await ask('Stat', { path })).toMatchObject({ entry: { modifiedTime: told } });
  }
});

test('a link is told with where it leads, and with the type and the mode of that', async () => {
  mkdirSync(at('directory'), { mode: 0o711 });
  symlinkSync('directory', at('link'));
  symlinkSync('link', at('link to link'));
  symlinkSync('gone/on', at('nowhere'));
  lutimesSync(at('link'), 5, 5);
  const described = { path: at('link'), name: 'link', type: 'FILE_TYPE_DIRECTORY', owner: 'root', group: 'root' };
  const facts = { size: '9', mode: 0o711, permissions: 'Lrwxrwxrwx', modifiedTime: '1970-01-01T00:00:05Z' };
  const link = { isSymlink: true, symlinkTarget: at('directory') };
  expect(await entryOf('link')).toEqual({ ...described, ...facts, ...link } as EntryInfo);
  expect((await entryOf('link to link')).symlinkTarget).toBe(at('directory'));
  const nowhere = await entryOf('nowhere');
  expect(nowhere).toMatchObject({ symlinkTarget: at('gone/on'), mode: 0o777, isSymlink: true });
  expect('type' in nowhere).toBeFalse();
});

test('very old clients get a name, a type and a path', async () => {
  writeFileSync(at('a'), 'x');
  const short = { name: 'a', type: 'FILE_TYPE_FILE', path: at('a') };
  expect(await ask('Stat', { path: at('a') }, { short: true })).toEqual({ entry: short });
  expect(await ask('ListDir', { path: folder }, { short: true })).toEqual({ entries: [short] });
  symlinkSync('gone', at('b'));
  expect(await ask('Stat', { path: at('b') }, { short: true })).toEqual({ entry: { name: 'b', path: at('b') } });
});

test('a directory is listed as deep as asked, siblings in byte order, links not entered', async () => {
  mkdirSync(at('b/c/d'), { recursive: true });
  for (const name of ['a', 'b/x', 'b/c/y', 'é', 'Z']) writeFileSync(at(name), '');
  symlinkSync('b', at('link'));
  expect(await namesOf({ path: folder })).toEqual(['Z', 'a', 'b', 'link', 'é']);
  expect(await namesOf({ path: folder, depth: 0 })).toEqual(['Z', 'a', 'b', 'link', 'é']);
  expect(await namesOf({ path: folder, depth: 2 })).toEqual(['Z', 'a', 'b', 'b/c', 'b/x', 'link', 'é']);
  const whole = ['Z', 'a', 'b', 'b/c', 'b/c/d', 'b/c/y', 'b/x', 'link', 'é'];
  expect(await namesOf({ path: folder, depth: 9 })).toEqual(whole);
  expect(await namesOf({ path: at('link') })).toEqual(['link/c', 'link/x']);
  // One slash is enough.
  expect(await namesOf({ path: `${at('b')}/` })).toEqual(['b/c', 'b/x']);
  expect(await ask('ListDir', { path: at('b/c/d') })).toEqual({});
});

test('more entries than are read at a time are all listed', async () => {
  const names = Array.from({ length: 150 }, (_, number) => String(number).padStart(3, '0'));
  for (const name of names) writeFileSync(at(name), '');
  expect(await namesOf({ path: folder, depth: 2 })).toEqual(names);
});

test('an entry that can’t be looked at is left out; what befalls the agent itself ends the list', async () => {
  mkdirSync(at('b/c'), { recursive: true });
  for (const name of ['a', 'b/x', 'z']) writeFileSync(at(name), '');
  const failing = (name: string, code: string) => ({
    attributes(file: unknown) {
      if (String(file) === at(name)) throw Object.assign(new Error('it fails'), { code });
      return new Map<string, string>();
    },
  });
  const listed = async (name: string, code: string) => {
    const entries = await listDirectory(failing(name, code) as unknown as Native, folder, 3);
    return entries.map(({ path }) => path.slice(folder.length + 1));
  };
  for (const code of ['ENOENT', 'ENOTDIR', 'ESRCH', 'EINVAL', 'EACCES', 'EPERM', 'EIO', 'ENOTCONN', 'ESTALE']) {
    expect(await listed('a', code)).toEqual(['b', 'b/c', 'b/x', 'z']);
    expect(await listed('b/c', code)).toEqual(['a', 'b', 'b/x', 'z']);
  }
  for (const name of ['a', 'b/c', 'z'])
    await expect(listed(name, 'EMFILE')).rejects.toEqual(error('internal', 'it fails'));
});

test('only an existing directory can be listed', async () => {
  writeFileSync(at('file'), '');
  await expect(ask('ListDir', { path: at('file') })).rejects.toEqual(error('invalid', 'is not a directory'));
  await expect(ask('ListDir', { path: at('gone') })).rejects.toEqual(
    error('not_found', `path '${at('gone')}' not found`),
  );
  await expect(ask('Stat', { path: at('file/x') })).rejects.toEqual(
    error('not_found', 'goes through something that is not a directory'),
  );
});

test('a directory is made once, with missing parents, and belongs to the user', async () => {
  const made = (await ask('MakeDir', { path: at('a/b/c') })) as { entry: EntryInfo };
  expect(made.entry).toMatchObject({ path: at('a/b/c'), type: 'FILE_TYPE_DIRECTORY', mode: 0o755 });
  expect(logged).toEqual([{ event: 'mkdir', path: at('a/b/c') }]);
  await expect(ask('MakeDir', { path: at('a/b') })).rejects.toEqual(error('conflict', 'already exists'));
  writeFileSync(at('file'), '');
  symlinkSync('gone', at('nowhere'));
  for (const path of ['file', 'nowhere'])
    await expect(ask('MakeDir', { path: at(path) })).rejects.toEqual(error('invalid', 'is not a directory'));
  await expect(ask('MakeDir', { path: at('file/x') })).rejects.toEqual(error('internal', 'not a directory'));
  await expect(ask('MakeDir', { path: at('nowhere/x/y') })).rejects.toEqual(error('internal', 'not found'));
  expect(logged).toHaveLength(1);
});

test('new directories belong to the user, and existing ones keep their owners', async () => {
  const user = { name: 'u', uid: 1234, gid: 1235, groups: [], home: '/' };
  mkdirSync(at('there'));
  expect(await makeDirectories(at('there/a/b'), user)).toBeTrue();
  expect(await makeDirectories(at('there/a/b'), user)).toBeFalse();
  await makeParents(at('there/c/file'), user);
  await makeParents(at('there/file'), user);
  for (const [name, uid, gid] of [
    ['there', 0, 0],
    ['there/a', 1234, 1235],
    ['there/a/b', 1234, 1235],
    ['there/c', 1234, 1235],
  ] as const)
    expect([name, lstatSync(at(name)).uid, lstatSync(at(name)).gid]).toEqual([name, uid, gid]);
  expect(existsSync(at('there/c/file'))).toBeFalse();
});

test('a move makes missing parents, and moves a link itself', async () => {
  writeFileSync(at('a'), 'content');
  symlinkSync('gone', at('link'));
  const moved = (await ask('Move', { source: at('a'), destination: at('new/b') })) as { entry: EntryInfo };
  expect([moved.entry.path, readFileSync(at('new/b'), 'utf8'), existsSync(at('a'))]).toEqual([
    at('new/b'),
    'content',
    false,
  ]);
  expect(logged).toEqual([{ event: 'move', path: at('a'), destination: at('new/b') }]);
  await ask('Move', { source: at('link'), destination: at('link2') });
  expect(lstatSync(at('link2')).isSymbolicLink()).toBeTrue();
  await expect(ask('Move', { source: at('a'), destination: at('elsewhere/b') })).rejects.toEqual(
    error('not_found', `path '${at('a')}' not found`),
  );
  expect(existsSync(at('elsewhere'))).toBeFalse();
  writeFileSync(at('file'), '');
  await expect(ask('Move', { source: at('new'), destination: at('file') })).rejects.toEqual(
    error('internal', 'not a directory'),
  );
});

test('a removal takes a file, a link itself, an empty directory, and nothing that is not there', async () => {
  mkdirSync(at('kept'));
  writeFileSync(at('kept/file'), '');
  mkdirSync(at('empty'));
  symlinkSync('kept', at('link'));
  writeFileSync(at('file'), '');
  for (const name of ['link', 'empty', 'file', 'gone', 'kept/file/x']) {
    expect(await ask('Remove', { path: at(name) })).toEqual({});
    expect(() => lstatSync(at(name))).toThrow();
  }
  expect(existsSync(at('kept/file'))).toBeTrue();
  expect(logged).toContainEqual({ event: 'remove', path: at('empty') });
  await expect(ask('Remove', { path: '/proc/self/stat' })).rejects.toEqual(error('forbidden', 'forbids it'));
  await expect(ask('Remove', { path: '/proc/self/task' })).rejects.toEqual(error('forbidden', 'forbids it'));
});

test('a full directory is removed by the init of the sandbox, which says what is left', async () => {
  mkdirSync(at('full/more'), { recursive: true });
  const record = initThat(`printf '%s ' "$@" "$PWD" > ${at('asked')}; rm -rf -- "$2"`);
  await ask('Remove', { path: `${at('full')}//` }, { initPath: record });
  expect([existsSync(at('full')), readFileSync(at('asked'), 'utf8')]).toEqual([false, `remove ${at('full')} / `]);
  mkdirSync(at('full/more'), { recursive: true });
  const fails = initThat('echo "16 it is in use" >&2; exit 1');
  const whole = `'${at('full')}' was not removed whole: it is in use`;
  await expect(ask('Remove', { path: at('full') }, { initPath: fails })).rejects.toEqual(error('internal', whole));
});

test('a user who is not there has no files', async () => {
  await expect(ask('Stat', { path: '~nobody/x' })).rejects.toEqual(error('invalid', 'home directories'));
  const call = { username: 'somebody else', wantsShortEntries: false } as unknown as Call;
  const agent = { settings: () => ({ defaultUser: 'root', defaultWorkdir: folder }) } as unknown as FilesystemHost;
  const asked = () => openFilesystem(agent).unary['Stat']?.({} as never, call);
  expect(asked).toThrow(error('unauthenticated', 'invalid username') as Error);
});
