import { afterAll, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newUuid } from '../base/id.ts';
import { directoryStore, prepareStoreDirectory } from './directory.ts';

const root = mkdtempSync(join(tmpdir(), 'atoll-directory-store-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A new store, and the folder of its objects. */
function opened() {
  const folder = prepareStoreDirectory(join(root, newUuid()));
  return { folder, store: directoryStore(folder, '/as/the/operator/says') };
}

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const modeOf = (path: string) => statSync(path).mode & 0o777;
const keysIn = async (list: AsyncIterable<{ key: string }>) =>
  (await Array.fromAsync(list)).map(({ key }) => key).toSorted();

test('the folder of a store is closed, and open within, whatever the umask', () => {
  const path = join(root, newUuid());
  const before = process.umask(0o077);
  try {
    expect(prepareStoreDirectory(path)).toBe(join(path, 'objects'));
    // A second call changes nothing.
    expect(prepareStoreDirectory(path)).toBe(join(path, 'objects'));
    expect(process.umask()).toBe(0o077);
  } finally {
    process.umask(before);
  }
  expect([modeOf(path), modeOf(join(path, 'objects'))]).toEqual([0o700, 0o777]);
});

test('every process of control may read and write what another one has written', async () => {
  const { folder, store } = opened();
  const before = process.umask(0o077);
  try {
    await store.put('a/b/c', bytes('content'));
    await store.put('a/d', bytes('beside'));
  } finally {
    process.umask(before);
  }
  expect(['a', 'a/b'].map(path => modeOf(join(folder, path)))).toEqual([0o777, 0o777]);
  expect(['a/b/c', 'a/d'].map(path => modeOf(join(folder, path)))).toEqual([0o666, 0o666]);
  expect(Buffer.from(await store.get('a/b/c')).toString()).toBe('content');
  expect([await store.head('a/b/c'), await store.head('a/b'), await store.head('a/x')]).toEqual([7, null, null]);
});

test('existing folders stay as they are', async () => {
  const { folder, store } = opened();
  mkdirSync(join(folder, 'a'), { mode: 0o750 });
  await store.put('a/b/c', bytes('content'));
  expect([modeOf(join(folder, 'a')), modeOf(join(folder, 'a/b'))]).toEqual([0o750, 0o777]);
  expect(modeOf(folder)).toBe(0o777);
});

test('a failed write leaves no draft, and the earlier object', async () => {
  const { folder, store } = opened();
  mkdirSync(join(folder, 'a/taken'), { recursive: true });
  await expect(store.put('a/taken', bytes('x'))).rejects.toMatchObject({ code: 'unavailable' });
  expect(readdirSync(join(folder, 'a'))).toEqual(['taken']);
});

test('a list has the objects with the prefix, and drafts that a crash has left, which can be removed', async () => {
  const { folder, store } = opened();
  for (const key of ['a/one', 'a/other', 'a/sub/deep', 'b/one']) await store.put(key, bytes(key));
  utimesSync(join(folder, 'a/one'), 5, 5);
  const draft = `a/one.${newUuid()}.draft`;
  writeFileSync(join(folder, draft), 'half');
  symlinkSync('nowhere', join(folder, 'a/link'));
  expect(await keysIn(store.list('a/'))).toEqual(['a/one', draft, 'a/other', 'a/sub/deep'].toSorted());
  expect(await keysIn(store.list('a/o'))).toEqual(['a/one', draft, 'a/other'].toSorted());
  expect(await keysIn(store.list(''))).toHaveLength(5);
  expect(await keysIn(store.list('nothing/of/it'))).toEqual([]);
  expect((await Array.fromAsync(store.list('a/one'))).find(({ key }) => key === 'a/one')).toEqual({
    ...{ key: 'a/one', bytes: 5, changedAtMs: 5000 },
  });
  await store.remove(draft);
  expect(await keysIn(store.list('a/'))).toEqual(['a/one', 'a/other', 'a/sub/deep']);
  for (let times = 0; times < 2; times++) await store.remove('a/one');
  expect(await keysIn(store.list('a/'))).toEqual(['a/other', 'a/sub/deep']);
});

test('an invalid key leads nowhere', async () => {
  const { folder, store } = opened();
  writeFileSync(join(folder, '../secret'), 'x');
  const draft = `a.${newUuid()}.draft`;
  for (const wrong of ['../secret', '/etc/passwd', 'a//b', 'a/../../secret', '.hidden', '', 'a/', draft]) {
    await expect((async () => store.get(wrong))()).rejects.toMatchObject({ code: 'invalid' });
    await expect((async () => store.put(wrong, bytes('x')))()).rejects.toMatchObject({ code: 'invalid' });
  }
  await expect((async () => store.remove('../secret'))()).rejects.toMatchObject({ code: 'invalid' });
  expect(existsSync(join(folder, '../secret'))).toBe(true);
});

test('a missing object differs from a directory that is gone', async () => {
  const { folder, store } = opened();
  await expect(store.get('a/b')).rejects.toMatchObject({
    code: 'not_found',
    message: 'a/b is not in the store /as/the/operator/says',
  });
  rmSync(folder, { recursive: true });
  const gone = {
    code: 'unavailable',
    message: expect.stringContaining('/as/the/operator/says is out of reach (ENOENT)'),
  };
  await expect(store.head('a/b')).rejects.toMatchObject(gone);
  await expect(store.put('a/b', bytes('x'))).rejects.toMatchObject(gone);
  await expect(Array.fromAsync(store.list(''))).rejects.toMatchObject(gone);
  // It may be a file system that is not mounted: the store makes nothing there.
  expect(existsSync(folder)).toBe(false);
});

test('an object that can’t be looked for does not count as missing', async () => {
  await expect(opened().store.head('a'.repeat(300))).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('ENAMETOOLONG'),
  });
  await expect(Array.fromAsync(opened().store.list(`${'a'.repeat(300)}/`))).rejects.toThrow('ENAMETOOLONG');
});

test('a written file is closed', async () => {
  const { folder, store } = opened();
  await store.put('a/b', bytes('content'));
  const open = readdirSync('/proc/self/fd').map(name => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`);
    } catch {
      return ''; // the descriptor of this listing itself
    }
  });
  expect(open.length).toBeGreaterThan(3);
  expect(open.filter(path => path.startsWith(folder))).toEqual([]);
});

test('nothing is below an object, and nothing can be', async () => {
  const { store } = opened();
  await store.put('a', bytes('x'));
  expect(await store.head('a/b')).toBe(null);
  await expect(store.get('a/b')).rejects.toMatchObject({ code: 'not_found' });
  expect(await keysIn(store.list('a/'))).toEqual([]);
  await expect(store.put('a/b', bytes('x'))).rejects.toThrow('The store /as/the/operator/says');
});
