import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { Sandbox, Volume, VolumeFileType } from 'e2b';
import { holdingsOf, leaked } from '../support/leaks.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

// Volumes as users have them: through the published SDK and the one port.

/** Size of the file that is streamed up and down. */
const streamMiB = Number(process.env['VOLUME_STREAM_MIB'] ?? 48);

let platform: TestPlatform;
before(async () => {
  platform = await startPlatform({ ATOLL_VOLUME_MIB: String(Math.max(256, streamMiB + 64)) });
  Object.assign(process.env, platform.env);
});
after(() => platform[Symbol.asyncDispose]());

const failsWith = (pattern: RegExp) => (error: Error) => pattern.test(`${error.name} ${error.message}`);

test('the Volume class makes, finds and destroys volumes and works with what is in them', async () => {
  const volume = await Volume.create('sdk');
  assert.deepEqual(await Volume.list(), [{ volumeId: volume.volumeId, name: 'sdk' }]);
  assert.equal((await Volume.getInfo(volume.volumeId)).name, 'sdk');
  await assert.rejects(Volume.create('sdk'), failsWith(/VolumeError.*already/s));

  const file = await volume.writeFile('/notes/today.txt', 'first', { force: true, uid: 1000, gid: 1000, mode: 0o600 });
  assert.deepEqual(
    [file.path, file.type, file.size, file.mode, file.uid],
    ['/notes/today.txt', VolumeFileType.FILE, 5, 0o600, 1000],
  );
  assert.ok(Math.abs(file.mtime.getTime() - Date.now()) < 60_000);
  assert.equal(await volume.readFile('notes/today.txt'), 'first');
  assert.deepEqual(await volume.readFile('notes/today.txt', { format: 'bytes' }), new TextEncoder().encode('first'));
  assert.equal(await (await volume.readFile('notes/today.txt', { format: 'blob' })).text(), 'first');
  await assert.rejects(volume.writeFile('/notes/today.txt', 'second'), failsWith(/409/));
  await assert.rejects(volume.writeFile('/none/x', ''), failsWith(/VolumePathNotFound|NotFound/));
  assert.equal(await volume.exists('/none'), false);
  await volume.writeFile('/empty', '');
  assert.equal(await volume.readFile('/empty'), '');

  await volume.makeDir('/a/b', { force: true });
  assert.deepEqual(
    (await volume.list('/', { depth: 2 })).map(({ path }) => path),
    ['/a', '/a/b', '/empty', '/notes', '/notes/today.txt'],
  );
  assert.equal((await volume.updateMetadata('/a/b', { mode: 0o711, uid: 5 })).uid, 5);
  assert.equal((await volume.getInfo('/a/b')).mode, 0o711);
  await volume.remove('/a');
  assert.equal(await volume.exists('/a'), false);
  await assert.rejects(volume.remove('/'), failsWith(/400/));

  const again = await Volume.connect(volume.volumeId);
  assert.equal(await again.readFile('/notes/today.txt'), 'first');
  assert.equal(await Volume.destroy(volume.volumeId), true);
  assert.equal(await Volume.destroy(volume.volumeId), false);
  await assert.rejects(again.readFile('/notes/today.txt'), failsWith(/Authentication/));
});

test('who watches a volume is told of what is there, and of no file that is still on its way', async () => {
  const volume = await Volume.create('watched');
  const sandbox = await Sandbox.create({ volumeMounts: { '/data': volume } });
  try {
    const named: string[] = [];
    const watch = await sandbox.files.watchDir('/data', ({ type, name }) => void named.push(`${type} ${name}`));
    await volume.writeFile('/new', 'x'.repeat(1_000_000));
    await volume.writeFile('/new', 'y', { force: true });
    // The last event is reported last.
    await sandbox.files.write('/data/last', '');
    await waitFor('the last event', () => named.some(event => event.endsWith(' last')));
    await watch.stop();
    assert.deepEqual([...new Set(named.map(event => event.split(' ')[1]))], ['new', 'last'], named.join(', '));
  } finally {
    await sandbox.kill();
  }
  await Volume.destroy(volume.volumeId);
});

test(`${streamMiB} MiB go up and down as streams, in constant memory of the platform`, async () => {
  const volume = await Volume.create('streams');
  const block = new Uint8Array(1 << 20).map((_, index) => index % 251);
  const sent = createHash('sha256');
  let blocks = 0;
  const source = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (blocks++ === streamMiB) return controller.close();
      sent.update(block);
      controller.enqueue(block);
    },
  });
  assert.equal((await volume.writeFile('/big', source)).size, streamMiB << 20);
  const received = createHash('sha256');
  for await (const part of (await volume.readFile('/big', {
    format: 'stream',
  })) as unknown as AsyncIterable<Uint8Array>)
    received.update(part);
  assert.equal(received.digest('hex'), sent.digest('hex'));

  // An upload that does not fit is refused, and leaves nothing behind.
  const endless = new ReadableStream<Uint8Array>({ pull: controller => controller.enqueue(block) });
  await assert.rejects(volume.writeFile('/too-big', endless));
  assert.equal(await volume.exists('/too-big'), false);

  // Nor does an upload whose client goes away.
  const { hostname, port } = new URL(platform.ready.url);
  for (const head of ['Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n', 'Content-Length: 100\r\n\r\nhello']) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    socket.write(
      `PUT /volumecontent/${volume.volumeId}/file?path=/cut HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${volume.token}\r\n${head}`,
    );
    await new Promise(resolve => setTimeout(resolve, 100));
    socket.destroy();
  }
  await volume.writeFile('/after', 'x');
  assert.equal(await volume.exists('/cut'), false);
  await Volume.destroy(volume.volumeId);
});

test('sandboxes share volumes through pauses, forks, snapshots and a crash of the platform, and leave nothing', async () => {
  const before = holdingsOf(platform.ready.dataDir);
  const [shared, own] = await Promise.all([Volume.create('shared'), Volume.create('own')]);
  await shared.writeFile('/hello', 'from outside');
  const volumeMounts = { '/data': shared, '/home/user/own': 'own' };
  const [one, two] = await Promise.all([
    Sandbox.create({ volumeMounts }),
    Sandbox.create({ volumeMounts: { '/srv/shared': shared } }),
  ]);
  assert.equal(await one.files.read('/data/hello'), 'from outside');
  assert.deepEqual((await one.getInfo()).volumeMounts?.map(({ name, path }) => `${name} ${path}`).sort(), [
    'own /home/user/own',
    'shared /data',
  ]);
  await one.files.write('/data/of-one', 'one');
  assert.equal((await two.commands.run('cat of-one; stat -c %U of-one', { cwd: '/srv/shared' })).stdout, 'oneuser\n');
  assert.equal((await shared.getInfo('/of-one')).uid, 1000);
  const told: string[] = [];
  const watch = await one.files.watchDir('/data', ({ name }) => void told.push(name));
  for (const content of ['first', 'second']) await shared.writeFile('/watched', content, { force: true });
  await shared.writeFile('/last', '');
  await waitFor('the watch to tell of the last upload', () => told.includes('last'));
  await watch.stop();
  assert.deepEqual([...new Set(told)], ['watched', 'last']);
  const inside = async (sandbox: Sandbox, command: string) => (await sandbox.commands.run(command)).stdout.trim();
  await one.commands.run('while :; do date +%s%N > own/tick; sleep 0.05; done', { background: true, timeoutMs: 0 });
  const ticks = (sandbox: Sandbox) =>
    waitFor(
      'the loop to go on',
      async () => (await inside(sandbox, 'cat own/tick')) !== (await inside(sandbox, 'sleep 0.2; cat own/tick')),
    );

  await two.commands.run('tail -f of-one', { background: true, timeoutMs: 0, cwd: '/srv/shared' });
  await one.pause();
  const { hostname, port } = new URL(platform.ready.url);
  const upload = connect(Number(port), hostname).on('error', () => {});
  upload.write(
    `PUT /volumecontent/${shared.volumeId}/file?path=/cut HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${shared.token}\r\nContent-Length: 100\r\n\r\nhello`,
  );
  await assert.rejects(Volume.destroy(own.volumeId), failsWith(/409.*mounted/s));
  await platform.kill9();
  await platform.restart();
  assert.equal(await shared.exists('/cut'), false);
  assert.equal(await inside(two, 'cat /srv/shared/of-one'), 'one');
  const resumed = await Sandbox.connect(one.sandboxId);
  await ticks(resumed);
  assert.equal(await inside(resumed, 'cat /data/of-one'), 'one');

  const [fork] = await resumed.fork({ count: 1, timeoutMs: 60_000 });
  assert.ok(fork instanceof Sandbox, String(fork));
  await ticks(fork);
  await fork.files.write('/data/of-fork', 'fork');
  assert.equal(await inside(two, 'cat /srv/shared/of-fork'), 'fork');
  const { snapshotId } = await resumed.createSnapshot();
  const child = await Sandbox.create(snapshotId);
  await ticks(child);
  assert.equal(await inside(child, 'cat /data/of-fork'), 'fork');

  // What the second sandbox has open is gone when it comes back: the answer says so, and it can boot.
  await two.pause();
  await platform.stop();
  await platform.restart();
  await shared.remove('/of-one');
  await assert.rejects(Sandbox.connect(two.sandboxId), failsWith(/of-one.*memory: false/s));
  const booted = await platform.api('POST', `/sandboxes/${two.sandboxId}/connect`, { timeout: 60, memory: false });
  assert.equal(booted.status, 201);
  assert.equal(await inside(two, 'cat /srv/shared/of-fork'), 'fork');

  await Promise.all([resumed, two, fork, child].map(sandbox => sandbox.kill()));
  assert.equal(await shared.readFile('/of-fork'), 'fork');
  await Promise.all([shared, own].map(({ volumeId }) => Volume.destroy(volumeId)));
  await Sandbox.deleteSnapshot(snapshotId);
  await waitFor('everything to be gone', () => leftOf(before).length === 0).catch(() => {});
  assert.deepEqual(leftOf(before), []);
});

/** Without what belongs to the pool. */
function leftOf(before: ReturnType<typeof holdingsOf>): string[] {
  return leaked(before, holdingsOf(platform.ready.dataDir)).filter(name => /volume/.test(name));
}
