import { afterEach, beforeEach, expect, test } from 'bun:test';
import {
  appendFileSync,
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Call } from '../../connect/call.ts';
import { Outbox } from '../../connect/outbox.ts';
import { openNative, type Native } from '../../native.ts';
import type { EntryInfo } from '../entry-info.ts';
import { openFilesystem, type Filesystem, type FilesystemHost } from '../operations.ts';
import { Inotify } from './inotify.ts';
import { TreeWatch } from './tree-watch.ts';

// The kernel's own events, through a pump as the sandbox's init has one. How an agent in a sandbox passes them to its
// clients is in test/agent/watch.test.ts.

let folder = '';
let initPath = '';
const cleanUps: (() => unknown)[] = [];
beforeEach(() => {
  const outer = mkdtempSync(join(tmpdir(), 'atoll-agent-watch-'));
  cleanUps.push(() => rmSync(outer, { recursive: true }));
  folder = join(outer, 'watched');
  mkdirSync(folder);
  initPath = join(outer, 'init');
  writeInit('/bin/cat <&3');
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** The pump ends with this process, however that ends: it holds an inotify instance, and a machine has few. */
function writeInit(pump: string): void {
  writeFileSync(initPath, `#!/bin/sh\nexec setpriv --pdeathsig KILL ${pump}\n`, { mode: 0o755 });
}

type Event = { name: string; type: string; entry?: EntryInfo };

function openWatched(native: Partial<Native> = {}): Filesystem {
  const agent = {
    native: { ...openNative(), ...native },
    ...{ initPath, journal: { add() {} }, settings: () => ({ defaultUser: 'root', defaultWorkdir: '/' }) },
  } as unknown as FilesystemHost;
  return openFilesystem(agent);
}

/** A watcher of the folder, or of `path`, that can be asked what has happened. */
async function watch(
  options: { recursive?: boolean; includeEntry?: boolean; path?: string } = {},
  files = openWatched(),
) {
  const ask = async (name: string, message: object) =>
    files.unary[name]?.(message as never, { username: '' } as unknown as Call);
  const { watcherId } = (await ask('CreateWatcher', { path: folder, ...options })) as { watcherId: string };
  const take = async () =>
    ((await ask('GetWatcherEvents', { watcherId })) as { events?: Event[] }).events?.map(event => event) ?? [];
  const remove = () => ask('RemoveWatcher', { watcherId });
  cleanUps.push(() => remove().catch(() => {}));
  return {
    take,
    remove,
    /** The reported events, e.g. `create a`. */
    told: async () => (await take()).map(({ name, type }) => `${type.slice(11).toLowerCase()} ${name}`),
  };
}
const at = (name: string) => join(folder, name);
const outside = (name: string) => join(folder, '..', name);
/** An empty file that nobody has written to. */
const make = (path: string | Buffer) => closeSync(openSync(path, 'wx'));

test('everything that happens to the entries of a directory is told, in order', async () => {
  const { told } = await watch();
  expect(await told()).toEqual([]);
  for (const [happens, events] of [
    [() => make(at('a')), ['create a']],
    [() => appendFileSync(at('a'), 'x'), ['write a']],
    [() => chmodSync(at('a'), 0o600), ['chmod a']],
    [() => renameSync(at('a'), at('b')), ['rename a', 'create b']],
    [() => renameSync(at('b'), outside('b')), ['rename b']],
    [() => renameSync(outside('b'), at('c')), ['create c']],
    [() => unlinkSync(at('c')), ['remove c']],
    [() => mkdirSync(at('d')), ['create d']],
    [() => symlinkSync('d', at('l')), ['create l']],
    // Nobody watches below it.
    [() => writeFileSync(at('d/x'), 'x'), []],
    [() => rmSync(at('d'), { recursive: true }), ['remove d']],
  ] as const) {
    happens();
    expect(await told()).toEqual([...events]);
  }
});

test('the directory itself is told by a dot, and its end is the last that is told', async () => {
  const { told } = await watch();
  chmodSync(folder, 0o700);
  expect(await told()).toEqual(['chmod .']);
  renameSync(folder, outside('moved'));
  expect(await told()).toEqual(['rename .']);
  make(outside('moved/a'));
  expect(await told()).toEqual(['create a']);
  rmSync(outside('moved'), { recursive: true });
  expect(await told()).toEqual(['remove a', 'remove .']);
});

test('a tree is watched with all that is made in it later', async () => {
  mkdirSync(at('a/b'), { recursive: true });
  const { told } = await watch({ recursive: true });
  make(at('a/b/x'));
  expect(await told()).toEqual(['create a/b/x']);
  mkdirSync(at('new'));
  expect(await told()).toEqual(['create new']);
  make(at('new/y'));
  appendFileSync(at('new/y'), 'content');
  expect(await told()).toEqual(['create new/y', 'write new/y']);
  rmSync(at('a'), { recursive: true });
  expect((await told()).sort()).toEqual(['remove a', 'remove a/b', 'remove a/b/x']);
  // Another directory of the same name is watched as well.
  mkdirSync(at('a'));
  expect(await told()).toEqual(['create a']);
  make(at('a/z'));
  expect(await told()).toEqual(['create a/z']);
});

test('entries put into a new directory before it could be watched are reported once', async () => {
  const { told } = await watch({ recursive: true });
  mkdirSync(at('a/b/c'), { recursive: true });
  writeFileSync(at('a/full'), 'content');
  make(at('a/b/c/empty'));
  writeFileSync(at('a/b/c/full'), 'content');
  const events = await told();
  const creations = [
    'create a',
    'create a/b',
    'create a/b/c',
    'create a/b/c/empty',
    'create a/b/c/full',
    'create a/full',
  ];
  expect(events.filter(event => event.startsWith('create')).sort()).toEqual(creations);
  for (const name of ['a/full', 'a/b/c/full']) expect(events).toContain(`write ${name}`);
  expect(events.filter(event => event.includes('empty'))).toEqual(['create a/b/c/empty']);
  appendFileSync(at('a/b/c/empty'), 'x');
  expect(await told()).toEqual(['write a/b/c/empty']);
});

test('a directory that is moved within the tree is told by its new name; one that leaves is not followed', async () => {
  mkdirSync(at('a/b'), { recursive: true });
  mkdirSync(at('other'));
  const { told } = await watch({ recursive: true });
  renameSync(at('a'), at('other/c'));
  expect(await told()).toEqual(['rename a', 'create other/c']);
  make(at('other/c/b/x'));
  expect(await told()).toEqual(['create other/c/b/x']);
  renameSync(at('other/c'), outside('gone'));
  expect(await told()).toEqual(['rename other/c']);
  make(outside('gone/y'));
  // A directory that comes from elsewhere is reported with its content.
  mkdirSync(outside('came/deep'), { recursive: true });
  writeFileSync(outside('came/deep/z'), 'content');
  await told();
  renameSync(outside('came'), at('came'));
  const came = await told();
  expect(came.filter(event => event.startsWith('create'))).toEqual([
    'create came',
    'create came/deep',
    'create came/deep/z',
  ]);
  expect(came).toContain('write came/deep/z');
});

test('links are entries, and not ways into other directories', async () => {
  mkdirSync(outside('elsewhere'));
  symlinkSync('../elsewhere', at('link'));
  const { told } = await watch({ recursive: true });
  make(outside('elsewhere/x'));
  expect(await told()).toEqual([]);
  // A link that is asked for by name is followed.
  const followed = await watch({ path: at('link') });
  make(outside('elsewhere/y'));
  expect([await followed.told(), await told()]).toEqual([['create y'], []]);
});

test('names that are no UTF-8 are watched like others', async () => {
  const name = Buffer.concat([Buffer.from(`${folder}/`), Buffer.of(0xff, 0x61)]);
  mkdirSync(name);
  const { told } = await watch({ recursive: true });
  make(Buffer.concat([name, Buffer.from('/é')]));
  expect(await told()).toEqual(['create \ufffda/é']);
});

test('entries are described where somebody wants that, and those that are gone are not', async () => {
  const { take } = await watch({ includeEntry: true });
  writeFileSync(at('a'), 'content');
  make(at('gone'));
  unlinkSync(at('gone'));
  chmodSync(folder, 0o711);
  const events = await take();
  expect(events.find(({ name }) => name === 'a')).toMatchObject({ entry: { path: at('a'), size: '7' } });
  expect(events.filter(({ name }) => name === 'gone').map(({ entry }) => entry)).toEqual([undefined, undefined]);
  expect(events.find(({ name }) => name === '.')).toMatchObject({ entry: { path: folder, mode: 0o711 } });
  unlinkSync(at('a'));
  expect(await take()).toEqual([{ name: 'a', type: 'EVENT_TYPE_REMOVE' }]);
});

test('watchers of one directory do not disturb each other', async () => {
  const files = openWatched();
  const [one, two] = [await watch({}, files), await watch({ recursive: true }, files)];
  make(at('a'));
  expect([await one.told(), await two.told()]).toEqual([['create a'], ['create a']]);
  await one.remove();
  make(at('b'));
  expect(await two.told()).toEqual(['create b']);
  await expect(one.told()).rejects.toMatchObject({ code: 'not_found' });
  await expect(one.remove()).rejects.toMatchObject({ code: 'not_found' });
});

test('there is one instance for all watchers, and none when the last of them is gone', async () => {
  const files = openWatched();
  const before = instances();
  for (let round = 0; round < 3; round++) {
    const [one, two] = [await watch({}, files), await watch({}, files)];
    make(at(`${round}`));
    expect([await one.told(), await two.told()]).toEqual([[`create ${round}`], [`create ${round}`]]);
    await one.remove();
    expect(instances()).toBe(before + 1);
    await two.remove();
    expect(instances()).toBe(before);
  }
});

/** The inotify instances that this process has open. */
const instances = () =>
  readdirSync('/proc/self/fd').filter(fd => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === 'anon_inode:inotify';
    } catch {
      return false; // the descriptor of the listing itself, which is closed by now
    }
  }).length;

test('after the kernel has lost events, changes are found by looking', async () => {
  mkdirSync(at('a'));
  // This pump ends when something has happened, as if somebody had killed it; until then it holds its pipe.
  writeInit('/bin/dd bs=4096 count=1 <&3 4>&1 >/dev/null 2>&1');
  const { told } = await watch({ recursive: true });
  const seen = new Set<string>();
  writeFileSync(at('a/x'), 'content');
  mkdirSync(at('b'));
  while (!seen.has('create a/x') || !seen.has('create b')) for (const event of await told()) seen.add(event);
  rmdirSync(at('b'));
  while (!seen.has('remove b') && !seen.has('write .')) for (const event of await told()) seen.add(event);
  expect(seen).toContain('create a/x');
});

test('a path that can’t be watched is refused with the reason', async () => {
  const before = instances();
  make(at('file'));
  for (const [path, code, message] of [
    [at('file'), 'invalid', 'is not a directory'],
    [at('gone'), 'not_found', 'not found'],
  ] as const)
    await expect(watch({ path })).rejects.toMatchObject({ code, message: expect.stringContaining(message) as string });
  const none = openWatched({ inotify: () => -1 });
  await expect(watch({}, none)).rejects.toMatchObject({
    code: 'rate_limited',
    message: expect.stringContaining('instance') as string,
  });
  mkdirSync(at('below'));
  const native = openNative();
  let left = 1;
  const few = openWatched({ addWatch: (...args) => (left-- > 0 ? native.addWatch(...args) : -1) });
  await expect(watch({ recursive: true }, few)).rejects.toMatchObject({
    code: 'rate_limited',
    message: expect.stringContaining(`'${at('below')}' can't be watched`) as string,
  });
  expect(instances()).toBe(before);
});

test('a watch that has no watch left for a new directory tells what came before, and then why it ends', async () => {
  const native = openNative();
  let isFull = false;
  const full = openWatched({
    addWatch: (fd, path, mask) => (isFull && String(path) !== initPath ? -1 : native.addWatch(fd, path, mask)),
  });
  const { told } = await watch({ recursive: true }, full);
  isFull = true;
  mkdirSync(at('new'));
  expect(await told()).toEqual(['create new']);
  await expect(told()).rejects.toMatchObject({ code: 'rate_limited' });
});

test('changes that a reader has no room for are found by looking once it has', async () => {
  mkdirSync(at('a'));
  const [events, refused]: [string[], PromiseWithResolvers<void>] = [[], Promise.withResolvers()];
  let hasRoom = false;
  const tree = new TreeWatch(new Inotify(openNative(), initPath), folder, true, {
    report({ name, type }) {
      if (hasRoom) events.push(`${type.slice(11).toLowerCase()} ${name}`);
      else refused.resolve();
      return hasRoom;
    },
    fail: error => refused.reject(error),
  });
  cleanUps.push(() => tree.close());
  await tree.arm();
  make(at('a/late'));
  await refused.promise;
  // Nobody waits for a reader without room.
  await tree.settle();
  make(at('later'));
  hasRoom = true;
  expect(events).toEqual([]);
  tree.catchUp();
  await tree.settle();
  expect(events).toContain('create a/late');
  expect(events).toContain('create later');
  events.length = 0;
  tree.catchUp();
  make(at('last'));
  await tree.settle();
  expect(events).toEqual(['create last']);
});

test('a file without a name is not told, and one that is named like it is', async () => {
  const { told } = await watch();
  const temporary = 0o20000000 | constants.O_DIRECTORY; // O_TMPFILE of open(2)
  const file = openSync(folder, temporary | constants.O_WRONLY);
  writeSync(file, 'content');
  closeSync(file);
  expect(await told()).toEqual([]);
  make(at('#12'));
  appendFileSync(at('#12'), 'x');
  expect(await told()).toEqual(['create #12', 'write #12']);
});

test('a stream tells that it watches, then everything, and ends with its deadline', async () => {
  const outbox = new Outbox();
  const body = outbox.stream();
  const call = { username: '', timeoutMs: 300, keepaliveMs: 90_000 } as unknown as Call;
  await openWatched().watchDir({ path: folder } as never, call, outbox);
  make(at('a'));
  const text = await new Response(body).text();
  const places = ['{"start":{}}', '{"filesystem":{"name":"a","type":"EVENT_TYPE_CREATE"}}', 'deadline_exceeded'].map(
    part => text.indexOf(part),
  );
  expect(places.every(place => place >= 0)).toBeTrue();
  expect(places).toEqual(places.toSorted((one, two) => one - two));
});

test('a client that reads late gets what has changed meanwhile once it does', async () => {
  const outbox = new Outbox();
  const reader = outbox.stream().getReader();
  cleanUps.push(() => reader.cancel());
  const call = { username: '', timeoutMs: undefined, keepaliveMs: 90_000 } as unknown as Call;
  await openWatched().watchDir({ path: folder } as never, call, outbox);
  // More than may wait for a client.
  outbox.add(new Uint8Array(1 << 20));
  writeFileSync(at('late'), 'content');
  let text = '';
  while (!text.includes('"name":"late"')) text += Buffer.from((await reader.read()).value ?? []).toString('latin1');
  expect(outbox.isOpen).toBeTrue();
});
