import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  FileNotFoundError,
  FilesystemEventType,
  FileType,
  InvalidArgumentError,
  type FilesystemEvent,
  type Sandbox,
} from 'e2b';
import { startSdkSandbox, type SdkSandbox } from './support/sdk.ts';

let started: SdkSandbox;
let sandbox: Sandbox;
before(async () => {
  started = await startSdkSandbox();
  ({ sandbox } = started);
});
after(() => started[Symbol.asyncDispose]());

test('write and read, in every form', async () => {
  const bytes = new Uint8Array(300_000).map((_, index) => index);
  const forms: [string, string | ArrayBuffer | Blob | ReadableStream][] = [
    ['text', 'some text ü'],
    ['buffer', bytes.buffer],
    ['blob', new Blob([bytes])],
    ['stream', new Blob([bytes]).stream()],
  ];
  for (const [name, data] of forms)
    assert.equal((await sandbox.files.write(`forms/${name}`, data)).path, `/home/user/forms/${name}`);
  assert.equal(await sandbox.files.read('forms/text'), 'some text ü');
  assert.deepEqual(await sandbox.files.read('forms/buffer', { format: 'bytes' }), bytes);
  assert.deepEqual(
    new Uint8Array(await (await sandbox.files.read('forms/blob', { format: 'blob' })).arrayBuffer()),
    bytes,
  );
  assert.deepEqual(
    new Uint8Array(await new Response(await sandbox.files.read('forms/stream', { format: 'stream' })).arrayBuffer()),
    bytes,
  );
});

test('empty files and files of proc are read as they are', async () => {
  await sandbox.files.write('empty', '');
  assert.equal(await sandbox.files.read('empty'), '');
  assert.equal((await sandbox.files.read('empty', { format: 'bytes' })).length, 0);
  assert.match(await sandbox.files.read('/proc/sys/kernel/random/boot_id'), /^[0-9a-f-]{36}\n$/);
  assert.match(await sandbox.files.read('/proc/net/tcp'), /local_address/);
});

test('several files are written at once, by both names of the method', async () => {
  const entries = [
    { path: 'many/a', data: 'A' },
    { path: '/tmp/many-b', data: 'B' },
  ];
  assert.deepEqual(
    (await sandbox.files.write(entries)).map(({ path }) => path),
    ['/home/user/many/a', '/tmp/many-b'],
  );
  assert.deepEqual(
    (await sandbox.files.writeFiles(entries)).map(({ name }) => name),
    ['a', 'many-b'],
  );
  assert.equal(await sandbox.files.read('/tmp/many-b'), 'B');
  assert.deepEqual(await sandbox.files.write([]), []);
});

test('uploads compress, carry metadata and take a user', async () => {
  await sandbox.files.write('packed', 'x'.repeat(100_000), { gzip: true, metadata: { author: 'me' }, user: 'root' });
  const info = await sandbox.files.getInfo('/root/packed');
  assert.deepEqual([info.size, info.owner, info.metadata], [100_000, 'root', { author: 'me' }]);
  assert.equal((await sandbox.files.read('/root/packed', { gzip: true })).length, 100_000);
});

test('list goes as deep as asked', async () => {
  await sandbox.files.write('tree/one/two/leaf', '');
  assert.deepEqual(
    (await sandbox.files.list('tree')).map(({ name, type }) => [name, type]),
    [['one', FileType.DIR]],
  );
  assert.deepEqual(
    (await sandbox.files.list('tree', { depth: 3 })).map(({ path }) => path.slice('/home/user/tree/'.length)),
    ['one', 'one/two', 'one/two/leaf'],
  );
  await assert.rejects(sandbox.files.list('nowhere'), FileNotFoundError);
  await assert.rejects(sandbox.files.list('tree/one/two/leaf'), InvalidArgumentError);
});

test('info describes a file', async () => {
  await sandbox.files.write('described', '12345');
  await sandbox.commands.run('ln -s described link; chmod 600 described');
  const info = await sandbox.files.getInfo('described');
  assert.deepEqual(
    [
      info.name,
      info.type,
      info.path,
      info.size,
      info.mode,
      info.permissions,
      info.owner,
      info.group,
      info.symlinkTarget,
    ],
    ['described', FileType.FILE, '/home/user/described', 5, 0o600, '-rw-------', 'user', 'user', undefined],
  );
  assert.ok(info.modifiedTime instanceof Date && Math.abs(info.modifiedTime.getTime() - Date.now()) < 60_000);
  assert.equal((await sandbox.files.getInfo('link')).symlinkTarget, '/home/user/described');
  await assert.rejects(sandbox.files.getInfo('nowhere'), FileNotFoundError);
});

test('exists, makeDir, rename and remove', async () => {
  assert.equal(await sandbox.files.exists('made/deep'), false);
  assert.equal(await sandbox.files.makeDir('made/deep'), true);
  assert.equal(await sandbox.files.makeDir('made/deep'), false);
  assert.equal(await sandbox.files.exists('made/deep'), true);
  assert.equal((await sandbox.files.rename('made/deep', 'made/renamed')).path, '/home/user/made/renamed');
  await assert.rejects(sandbox.files.rename('made/nothing', 'x'), FileNotFoundError);
  await sandbox.files.remove('made');
  await sandbox.files.remove('made');
  assert.equal(await sandbox.files.exists('made'), false);
  await assert.rejects(sandbox.files.read('made/renamed'), FileNotFoundError);
});

/** Resolves when an event of this kind and name comes. */
function waitForEvent(): {
  onEvent(event: FilesystemEvent): void;
  event(type: FilesystemEventType, name: string): Promise<FilesystemEvent>;
} {
  const seen: FilesystemEvent[] = [];
  let changed = () => {};
  return {
    onEvent(event) {
      seen.push(event);
      changed();
    },
    async event(type, name) {
      for (;;) {
        const found = seen.find(event => event.type === type && event.name === name);
        if (found) return found;
        await new Promise<void>(resolve => (changed = resolve));
      }
    },
  };
}

test('watching tells changes, below too, with entries', async () => {
  await sandbox.files.makeDir('watched/sub');
  const { onEvent, event } = waitForEvent();
  const handle = await sandbox.files.watchDir('watched', onEvent, { recursive: true, includeEntry: true });
  await sandbox.files.write('watched/sub/file', 'x');
  await event(FilesystemEventType.CREATE, 'sub/file');
  assert.equal((await event(FilesystemEventType.WRITE, 'sub/file')).entry?.size, 1);
  await sandbox.files.rename('watched/sub/file', 'watched/sub/other');
  await event(FilesystemEventType.RENAME, 'sub/file');
  await sandbox.commands.run('chmod 600 watched/sub/other');
  await event(FilesystemEventType.CHMOD, 'sub/other');
  await sandbox.files.remove('watched/sub/other');
  await event(FilesystemEventType.REMOVE, 'sub/other');
  await handle.stop();
});

test('a watch ends by its timeout, and refuses what is not there', async () => {
  await sandbox.files.makeDir('timed');
  const error = await new Promise<Error | undefined>((resolve, reject) => {
    sandbox.files.watchDir('timed', () => {}, { timeoutMs: 300, onExit: resolve }).catch(reject);
  });
  assert.match(error?.message ?? '', /deadline/);
  await assert.rejects(
    sandbox.files.watchDir('nowhere', () => {}),
    FileNotFoundError,
  );
});

test('metrics of the agent are numbers', async () => {
  const response = await fetch(`${started.agent.url}/metrics`);
  for (const value of Object.values((await response.json()) as object)) assert.equal(typeof value, 'number');
});
