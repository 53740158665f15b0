import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { FileNotFoundError, InvalidArgumentError, NotFoundError, Sandbox } from 'e2b';
import { getByHost } from '../support/by-host.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

let platform: TestPlatform;
let sandbox: Sandbox;
before(async () => {
  platform = await startPlatform();
  Object.assign(process.env, platform.env);
  sandbox = await Sandbox.create();
});
after(() => platform[Symbol.asyncDispose]());

/** Signed URLs carry no routing headers: they are for the sandbox's own host. */
const signed = (url: string) =>
  getByHost(platform.ready.url, sandbox.getHost(49983), new URL(url).pathname + new URL(url).search);

test('text comes back as it was written, in the user’s home by default', async () => {
  const written = await sandbox.files.write('notes/today.txt', 'grüße ☃\n');
  assert.equal(written.path, '/home/user/notes/today.txt');
  assert.equal(await sandbox.files.read('notes/today.txt'), 'grüße ☃\n');
  assert.equal(await sandbox.files.read('/home/user/notes/today.txt'), 'grüße ☃\n');
  assert.equal((await sandbox.commands.run('stat -c %U:%G:%a notes/today.txt')).stdout, 'user:user:644\n');
});

test('bytes come back as they were written', async () => {
  const bytes = Uint8Array.from({ length: 300_000 }, (_, index) => (index * 7919) & 255);
  await sandbox.files.write('/tmp/data.bin', bytes.buffer);
  assert.deepEqual(await sandbox.files.read('/tmp/data.bin', { format: 'bytes' }), bytes);
});

test('several files in one call', async () => {
  const files = ['a.txt', 'deep/b.txt', 'deep/er/c.txt'].map(path => ({ path, data: `content of ${path}` }));
  assert.equal((await sandbox.files.write(files)).length, 3);
  for (const { path, data } of files) assert.equal(await sandbox.files.read(path), data);
});

test('a file of another user belongs to it', async () => {
  await sandbox.files.write('mine.txt', 'x', { user: 'root' });
  assert.equal((await sandbox.commands.run('stat -c %U /root/mine.txt', { user: 'root' })).stdout, 'root\n');
});

test('listing, with depth', async () => {
  await sandbox.files.write([
    { path: 'tree/one.txt', data: '1' },
    { path: 'tree/sub/two.txt', data: '22' },
  ]);
  const flat = await sandbox.files.list('tree');
  assert.deepEqual(flat.map(entry => [entry.name, entry.type]).sort(), [
    ['one.txt', 'file'],
    ['sub', 'dir'],
  ]);
  const deep = await sandbox.files.list('tree', { depth: 2 });
  assert.deepEqual(deep.map(entry => entry.path).sort(), [
    '/home/user/tree/one.txt',
    '/home/user/tree/sub',
    '/home/user/tree/sub/two.txt',
  ]);
  assert.equal(deep.find(entry => entry.name === 'two.txt')?.size, 2);
});

test('folders are made once, renamed and removed', async () => {
  assert.equal(await sandbox.files.makeDir('box/inner'), true);
  assert.equal(await sandbox.files.makeDir('box/inner'), false);
  const moved = await sandbox.files.rename('box', 'crate');
  assert.equal(moved.path, '/home/user/crate');
  assert.deepEqual([await sandbox.files.exists('box'), await sandbox.files.exists('crate/inner')], [false, true]);
  await sandbox.files.remove('crate');
  assert.equal(await sandbox.files.exists('crate'), false);
});

test('what is known of an entry', async () => {
  await sandbox.files.write('info.txt', '12345');
  await sandbox.commands.run('chmod 640 info.txt && ln -s info.txt link');
  const info = await sandbox.files.getInfo('info.txt');
  assert.deepEqual(
    [info.name, info.type, info.path, info.size, info.mode, info.permissions, info.owner, info.group],
    ['info.txt', 'file', '/home/user/info.txt', 5, 0o640, '-rw-r-----', 'user', 'user'],
  );
  assert.ok(Math.abs((info.modifiedTime?.getTime() ?? 0) - Date.now()) < 60_000);
  assert.equal((await sandbox.files.getInfo('link')).symlinkTarget, '/home/user/info.txt');
});

test('a file that is not there, and a folder read as a file', async () => {
  await assert.rejects(sandbox.files.read('no-such-file'), FileNotFoundError);
  await assert.rejects(sandbox.files.list('no-such-folder'), NotFoundError);
  await assert.rejects(sandbox.files.getInfo('no-such-file'), NotFoundError);
  await assert.rejects(sandbox.files.read('/tmp'), InvalidArgumentError);
});

test('a signed URL downloads without the token, and only what it was signed for', async () => {
  await sandbox.files.write('signed.txt', 'by link');
  const download = await signed(await sandbox.downloadUrl('signed.txt'));
  assert.deepEqual(download, { status: 200, body: 'by link' });
  assert.equal(
    (await signed((await sandbox.downloadUrl('signed.txt')).replace('signed.txt', 'other.txt'))).status,
    401,
  );
});

test('signed URLs work as they are, in the very environment that a start prints', async () => {
  const upload = await fetch(await sandbox.uploadUrl('uploaded.txt'), {
    method: 'POST',
    headers: { 'Content-Type': 'application/octet-stream' },
    body: 'up by link',
  });
  assert.equal(upload.status, 200, await upload.text());
  assert.equal(await sandbox.files.read('uploaded.txt'), 'up by link');
  const url = await sandbox.downloadUrl('uploaded.txt', { useSignatureExpiration: 60 });
  const download = await fetch(url);
  assert.deepEqual([download.status, await download.text()], [200, 'up by link']);
  assert.equal((await fetch(url.replace('uploaded.txt', 'other.txt'))).status, 404);
  // Among several sandboxes, finds the one whose token has signed it.
  const other = await Sandbox.create();
  assert.equal((await fetch(await other.downloadUrl('uploaded.txt'))).status, 404);
  await other.files.write('uploaded.txt', "the other's");
  assert.equal(await (await fetch(await other.downloadUrl('uploaded.txt'))).text(), "the other's");
  await other.kill();
  const [hostPort, domain] = [sandbox.getHost(8000), platform.ready.domain];
  assert.equal(hostPort, `8000-${sandbox.sandboxId}.${domain}`);
});

test('sixty-four megabytes go up and down', async () => {
  const block = new Uint8Array(1 << 20).map((_, index) => index & 255);
  const blob = new Blob(Array.from({ length: 64 }, () => block));
  await sandbox.files.write('/tmp/large.bin', blob);
  const { stdout } = await sandbox.commands.run('stat -c %s /tmp/large.bin');
  assert.equal(Number(stdout), 64 << 20);
  let bytes = 0;
  const stream = await sandbox.files.read('/tmp/large.bin', { format: 'stream' });
  for await (const part of stream) bytes += part.length;
  assert.equal(bytes, 64 << 20);
});
