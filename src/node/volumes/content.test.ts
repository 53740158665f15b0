import { afterEach, beforeEach, expect, test } from 'bun:test';
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beginFile, removeUploads } from './file-content.ts';
import { turnsOfReads } from '../../base/concurrency/long-reads.ts';
import { volumeProtocolOf, type VolumeParts } from './protocol.ts';

const volumeId = 'v';
const everybody = { uid: 1234, gid: 1235, mode: 0o640, force: false };
const forced = { ...everybody, force: true };

let folder = '';
let used: string[] = [];
/** How many uses the volume has now. */
let users = 0;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-volume-content-'));
  mkdirSync(join(folder, 'data'));
  [used, users] = [[], 0];
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A node with one volume, whose content is a folder of this host. */
function node(parts: object = {}) {
  const volumes = {
    async use() {
      users++;
      return {
        root: join(folder, 'data'),
        change: <T>(work: () => Promise<T>) => (used.push('change'), work()),
        release: () => void users--,
      };
    },
    touch: () => void used.push('touch'),
    remove: async () => void used.push('remove'),
  };
  const helper = { mountsPid: process.pid, spawn: async () => ({ status: 0, output: '' }) };
  const sandboxes = { records: () => [] };
  const whole = {
    volumes,
    helper,
    helperBinary: '/helper',
    space: { require() {} },
    sandboxes,
    inTurn: turnsOfReads(),
    ...parts,
  };
  return volumeProtocolOf(whole as unknown as VolumeParts);
}
const at = (name: string) => join(folder, 'data', name);
const read = (name: string) => readFileSync(at(name), 'utf8');
const error = (code: string, message: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(message) }) as unknown;

async function write(path: string, content: string, entry = everybody) {
  const protocol = node();
  const { writeId, descriptor } = await protocol.openWrite(volumeId, path, entry);
  try {
    writeSync(descriptor, content);
  } finally {
    closeSync(descriptor);
  }
  return { keep: () => protocol.keepWrite(writeId, content.length), drop: () => protocol.dropWrite(writeId) };
}

test('an entry is described as the kernel has it, a link as itself', async () => {
  mkdirSync(at('a'));
  writeFileSync(at('a/file'), 'content');
  chmodSync(at('a/file'), 0o4750);
  symlinkSync('../../outside', at('a/link'));
  Bun.spawnSync(['mkfifo', at('a/pipe')]);
  const { stat } = node();
  const { size, mtimeMs, ctimeMs, atimeMs } = lstatSync(at('a/file'));
  expect(await stat(volumeId, '/a/file')).toEqual({
    ...{ name: 'file', type: 'file', path: '/a/file', sizeBytes: size, mode: 0o4750, uid: 0, gid: 0 },
    ...{ accessedAtMs: atimeMs, modifiedAtMs: mtimeMs, changedAtMs: ctimeMs },
  });
  expect(await stat(volumeId, 'a/link')).toMatchObject({ type: 'symlink', target: '../../outside' });
  expect(await stat(volumeId, 'a/pipe')).toMatchObject({ type: 'unknown', name: 'pipe' });
  expect(await stat(volumeId, '/')).toMatchObject({ type: 'directory', name: '/', path: '/' });
  expect('target' in (await stat(volumeId, 'a'))).toBeFalse();
  await expect(stat(volumeId, 'a/gone')).rejects.toEqual(error('not_found', 'path: "a/gone" was not found'));
  await expect(stat(volumeId, 'a/file/x')).rejects.toEqual(error('not_found', 'was not found'));
  expect([used, users]).toEqual([[], 0]);
});

test('no link leads out of a volume, whatever is asked for', async () => {
  writeFileSync(join(folder, 'secret'), 'secret');
  symlinkSync('..', at('up'));
  symlinkSync(folder, at('absolute'));
  symlinkSync('../secret', at('file'));
  symlinkSync('circle', at('circle'));
  const protocol = node();
  const attempts: ((path: string) => Promise<unknown>)[] = [
    path => protocol.stat(volumeId, `${path}/secret`),
    path => protocol.listDirectory(volumeId, path, 1),
    path => protocol.changeEntry(volumeId, `${path}/secret`, { mode: 0o777 }),
    path => protocol.makeDirectory(volumeId, `${path}/new`, forced),
    path => protocol.openRead(volumeId, `${path}/secret`),
    path => protocol.openWrite(volumeId, `${path}/new`, forced),
  ];
  for (const path of ['up', 'absolute', 'circle'])
    for (const attempt of attempts) await expect(attempt(path)).rejects.toMatchObject({ code: 'not_found' });
  for (const attempt of [
    () => protocol.openRead(volumeId, 'file'),
    () => protocol.changeEntry(volumeId, 'file', { mode: 0o777 }),
    () => protocol.listDirectory(volumeId, 'file', 1),
  ])
    await expect(attempt()).rejects.toEqual(error('not_found', 'was not found in the volume'));
  expect(readdirSync(folder).sort()).toEqual(['data', 'secret']);
  expect([lstatSync(join(folder, 'secret')).mode & 0o777, users]).toEqual([0o644, 0]);
});

test('a directory is made for the given owner, with its parents if that is allowed', async () => {
  const { makeDirectory } = node();
  await expect(makeDirectory(volumeId, 'a/b', everybody)).rejects.toEqual(error('not_found', 'was not found'));
  expect(existsSync(at('a'))).toBeFalse();
  expect(await makeDirectory(volumeId, 'a/b/c', forced)).toMatchObject({
    ...{ name: 'c', type: 'directory', path: '/a/b/c', mode: 0o640, uid: 1234, gid: 1235 },
  });
  for (const name of ['a', 'a/b']) {
    const { uid, gid, mode } = lstatSync(at(name));
    expect([uid, gid, mode & 0o7777]).toEqual([1234, 1235, 0o777]);
  }
  expect(used).toContain('touch');
});

test('an existing directory is accepted only if the caller allows that', async () => {
  const { makeDirectory } = node();
  mkdirSync(at('there'), { mode: 0o700 });
  await expect(makeDirectory(volumeId, 'there', everybody)).rejects.toEqual(
    error('conflict', 'path: "/there" exists already'),
  );
  expect(await makeDirectory(volumeId, 'there', forced)).toMatchObject({ mode: 0o700, uid: 0 });
  await expect(makeDirectory(volumeId, '/', everybody)).rejects.toEqual(error('conflict', 'exists already'));
  expect(await makeDirectory(volumeId, '/', forced)).toMatchObject({ name: '/' });
  writeFileSync(at('file'), '');
  symlinkSync('there', at('link'));
  for (const name of ['file', 'link'])
    await expect(makeDirectory(volumeId, name, forced)).rejects.toEqual(error('conflict', 'exists already'));
  await expect(makeDirectory(volumeId, 'file/x', forced)).rejects.toEqual(error('invalid', 'a parent is no directory'));
  await expect(makeDirectory(volumeId, 'x'.repeat(300), forced)).rejects.toEqual(error('invalid', 'too long'));
});

test('owner and permissions can be changed separately, and behind a link', async () => {
  const { changeEntry } = node();
  writeFileSync(at('file'), '');
  symlinkSync('file', at('link'));
  const facts = () => {
    const { uid, gid, mode } = lstatSync(at('file'));
    return [uid, gid, mode & 0o7777];
  };
  for (const [change, after] of [
    [{}, [0, 0, 0o644]],
    [{ mode: 0o600 }, [0, 0, 0o600]],
    [{ uid: 5 }, [5, 0, 0o600]],
    [{ gid: 6 }, [5, 6, 0o600]],
    [{ mode: 0, uid: 0, gid: 0 }, [0, 0, 0]],
  ] as const) {
    const { uid, gid, mode } = await changeEntry(volumeId, 'link', change);
    expect([uid, gid, mode]).toEqual([...after]);
    expect(facts()).toEqual([...after]);
  }
  await expect(changeEntry(volumeId, 'gone', { mode: 1 })).rejects.toEqual(error('not_found', '"gone" was not found'));
});

test('a directory is listed with its children right behind it, as deep as asked', async () => {
  const { listDirectory } = node();
  mkdirSync(at('b/c/d'), { recursive: true });
  for (const name of ['a', 'é', 'b/x', 'b/c/y']) writeFileSync(at(name), '');
  symlinkSync('b', at('link'));
  const listed = async (path: string, depth: number) =>
    (await listDirectory(volumeId, path, depth)).map(({ path: one }) => one.slice(1));
  expect(await listed('/', 1)).toEqual(['a', 'b', 'link', 'é']);
  expect(await listed('/', 2)).toEqual(['a', 'b', 'b/c', 'b/x', 'link', 'é']);
  expect(await listed('/', 9)).toEqual(['a', 'b', 'b/c', 'b/c/d', 'b/c/y', 'b/x', 'link', 'é']);
  expect(await listed('b/c', 1)).toEqual(['b/c/d', 'b/c/y']);
  expect(await listed('link', 1)).toEqual(['link/c', 'link/x']);
  expect((await listDirectory(volumeId, '', 1).catch(({ code }) => code)) as unknown).toBe('invalid');
  await expect(listDirectory(volumeId, 'a', 1)).rejects.toEqual(error('invalid', 'path: "a" is no directory'));
  await expect(listDirectory(volumeId, 'gone', 1)).rejects.toEqual(error('not_found', 'was not found'));
});

test('a regular file is read, behind links too, and nothing else is', async () => {
  const { openRead } = node();
  mkdirSync(at('directory'));
  writeFileSync(at('directory/file'), 'content');
  symlinkSync('directory/file', at('link'));
  Bun.spawnSync(['mkfifo', at('pipe')]);
  for (const name of ['directory/file', 'link']) {
    const { descriptor, sizeBytes } = await openRead(volumeId, name);
    expect([readFileSync(descriptor, 'utf8'), sizeBytes]).toEqual(['content', 7]);
    closeSync(descriptor);
  }
  await expect(openRead(volumeId, 'directory')).rejects.toEqual(error('invalid', '"directory" is a directory'));
  await expect(openRead(volumeId, 'pipe')).rejects.toEqual(error('invalid', '"pipe" is no regular file'));
  await expect(openRead(volumeId, 'gone')).rejects.toEqual(error('not_found', 'was not found'));
  expect(users).toBe(0);
});

test('a file that is written appears whole, when it is kept, and once', async () => {
  mkdirSync(at('a'));
  const { keep } = await write('a/file', 'content');
  expect([readdirSync(at('a')), users]).toEqual([[], 1]);
  const kept = await keep();
  expect(kept).toMatchObject({ name: 'file', path: '/a/file', sizeBytes: 7, mode: 0o640, uid: 1234, gid: 1235 });
  expect([read('a/file'), users, used.at(-1)]).toEqual(['content', 0, 'touch']);
  await expect(keep()).rejects.toEqual(error('unavailable', 'was cut off'));
  const { drop } = await write('a/other', 'content');
  await drop();
  expect([readdirSync(at('a')), users]).toEqual([['file'], 0]);
});

test('a file in a directory that is removed meanwhile is not found', async () => {
  const directory = join(folder, 'data', 'd');
  mkdirSync(directory);
  // The directory is opened before anything is waited for.
  const begun = beginFile(join(folder, 'data'), 'd/f', everybody);
  rmdirSync(directory);
  await expect(begun.then(file => file.keep())).rejects.toMatchObject({ code: 'not_found' });
});

test('a file takes the place of another only where it is asked to, and of a directory never', async () => {
  writeFileSync(at('file'), 'old');
  mkdirSync(at('directory'));
  const { openWrite } = node();
  const refused = (path: string, entry: typeof everybody, code: string, message: string) =>
    expect(openWrite(volumeId, path, entry)).rejects.toEqual(error(code, message));
  await refused('file', everybody, 'conflict', '"file" exists already; force replaces it');
  await refused('directory', forced, 'conflict', '"directory" is a directory');
  await refused('/', forced, 'conflict', 'the root of the volume is a directory');
  await refused('gone/file', everybody, 'not_found', 'was not found');
  await refused('file/x', forced, 'invalid', 'a parent is no directory');
  expect([users, read('file')]).toEqual([0, 'old']);
  await (await write('file', 'new', forced)).keep();
  await (await write('new/file', 'new', forced)).keep();
  expect([read('file'), read('new/file'), readdirSync(folder)]).toEqual(['new', 'new', ['data']]);
});

test('a file that takes the place of one that is being written stays', async () => {
  const { keep } = await write('a', 'late');
  writeFileSync(at('a'), 'first');
  await expect(keep()).rejects.toEqual(error('conflict', '"a" exists already'));
  const forcedOne = await write('b', 'late', forced);
  mkdirSync(at('b/full'), { recursive: true });
  await expect(forcedOne.keep()).rejects.toEqual(error('conflict', '"b" exists already'));
  expect([read('a'), readdirSync(at('b')), users, readdirSync(folder)]).toEqual(['first', ['full'], 0, ['data']]);
});

test('leftovers of uploads next to the content are removed after a crash, and nothing else is', async () => {
  for (const name of ['1.upload', '2.upload', 'other']) writeFileSync(join(folder, name), '');
  writeFileSync(at('mine.upload'), '');
  await removeUploads(join(folder, 'data'));
  expect([readdirSync(folder).sort(), readdirSync(at(''))]).toEqual([['data', 'other'], ['mine.upload']]);
});

test('no file and no volume stay open after what failed', async () => {
  const open = () => readdirSync('/proc/self/fd').length;
  const before = open();
  writeFileSync(at('file'), '');
  for (let round = 0; round < 5; round++) {
    await expect(write('file', '')).rejects.toThrow();
    await expect(write('gone/file', '')).rejects.toThrow();
    await expect(node().stat(volumeId, 'gone/x')).rejects.toThrow();
    await expect(node().listDirectory(volumeId, 'file', 1)).rejects.toThrow();
    await (await write(`${round}/file`, '', forced)).keep();
    await (await write(`${round}/other`, '', forced)).drop();
  }
  expect([open(), users]).toEqual([before, 0]);
});

test('a removal is done for one path at a time, and never for the root', async () => {
  const spawned: string[][] = [];
  const helper = {
    mountsPid: process.pid,
    async spawn(argv: string[]) {
      spawned.push(argv);
      return { status: 1, output: '2 x: No such file or directory' };
    },
  };
  const { removeEntry } = node({ helper });
  await expect(removeEntry(volumeId, '/')).rejects.toEqual(error('invalid', "the root of a volume can't be removed"));
  await expect(removeEntry(volumeId, '/a/../x')).rejects.toEqual(error('not_found', '"x" was not found'));
  expect(spawned).toEqual([['/helper', 'remove-beneath', join(folder, 'data'), 'x']]);
  expect([used.at(-1), users]).toEqual(['touch', 0]);
});

test('a volume that a sandbox has, in whatever state, is not removed', async () => {
  const sandboxes = { records: () => [{ sandboxId: 'a', volumes: [{ volumeId, path: '/x' }] }] };
  const { remove } = node({ sandboxes });
  await expect(remove(volumeId)).rejects.toEqual(error('conflict', `volume ${volumeId} is mounted in sandbox a`));
  expect(used).toEqual([]);
  await remove('other');
  expect(used).toEqual(['remove']);
});

test('links lead where they do for a program in the volume, and nowhere else', async () => {
  const it = node();
  const place = (name: string) => join(folder, 'data', name);
  mkdirSync(place('a/b'), { recursive: true });
  writeFileSync(place('a/b/f'), 'text');
  const links = {
    up: 'a/b/../b/',
    chain: 'up/.',
    self: 'self',
    out: '../x',
    above: 'a/../../data/a',
    root: '/a',
    none: 'a/c',
  };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, place(name));
  for (const path of ['/up/f', '/chain/f', '/up/../b/f']) {
    const { sizeBytes, descriptor } = await it.openRead(volumeId, path).catch(() => ({ sizeBytes: 0, descriptor: -1 }));
    if (descriptor >= 0) closeSync(descriptor);
    expect([path, sizeBytes]).toEqual([path, path === '/up/../b/f' ? 0 : 4]);
  }
  for (const name of ['self', 'out', 'above', 'root', 'none']) {
    await expect(it.stat(volumeId, `/${name}/f`)).rejects.toMatchObject({ code: 'not_found' });
    expect(await it.stat(volumeId, `/${name}`)).toMatchObject({ type: 'symlink' });
  }
});

test('a path over links has a bound of parts: nothing else is done while one is followed', async () => {
  const it = node();
  const place = (name: string) => join(folder, 'data', name);
  mkdirSync(place('d'));
  symlinkSync(`${'./'.repeat(250)}d`, place('short'));
  symlinkSync(`${'./'.repeat(260)}d`, place('long'));
  for (let index = 0; index < 30; index++)
    symlinkSync(`${'./'.repeat(2_000)}${index === 29 ? 'd' : `l${index + 1}`}`, place(`l${index}`));
  const depth = (name: string) => it.listDirectory(volumeId, `/${name}`, 1);
  expect(await depth('short')).toEqual([]);
  for (const name of ['long', 'l0']) await expect(depth(name)).rejects.toMatchObject({ code: 'not_found' });
  await expect(it.makeDirectory(volumeId, `/l0${'/x'.repeat(1_000)}`, forced)).rejects.toMatchObject({
    code: 'not_found',
  });
  expect(readdirSync(place('d'))).toEqual([]);
});

test('two hundred parents that are missing are made, below what is there', async () => {
  const it = node();
  mkdirSync(join(folder, 'data', 'a/b'), { recursive: true });
  const deep = `/a/b${'/c'.repeat(200)}`;
  await expect(it.makeDirectory(volumeId, deep, everybody)).rejects.toMatchObject({ code: 'not_found' });
  expect(await it.makeDirectory(volumeId, deep, forced)).toMatchObject({ type: 'directory', mode: 0o640 });
  expect(await it.stat(volumeId, deep)).toMatchObject({ uid: 1234 });
});
