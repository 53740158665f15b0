import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Sandbox, SandboxError, SandboxNotFoundError } from 'e2b';
import { getByHost } from '../support/by-host.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

let platform: TestPlatform;
before(async () => {
  platform = await startPlatform();
  Object.assign(process.env, platform.env);
});
after(() => platform[Symbol.asyncDispose]());

const timeoutMs = 600_000;
const ask = (sandbox: Sandbox) => getByHost(platform.ready.url, sandbox.getHost(8001), '/').then(({ body }) => body);

/** A sandbox with a server that counts its requests in memory, after the first request was answered. */
async function counting(): Promise<Sandbox> {
  const sandbox = await Sandbox.create({ timeoutMs, metadata: { of: 'source' } });
  await sandbox.files.write(
    'count.js',
    `let n = 0; require('http').createServer((_, answer) => answer.end(String(++n))).listen(8001, '127.0.0.1');`,
  );
  await sandbox.commands.run('node count.js', { background: true, timeoutMs: 0 });
  await waitFor('the counter', async () => (await ask(sandbox)) === '1');
  return sandbox;
}

test('a snapshot outlives its source with files and processes; it is listed, named, tagged and deleted', async () => {
  const source = await counting();
  await source.files.write('note.txt', 'then');
  const unnamed = await source.createSnapshot();
  assert.match(unnamed.snapshotId, /^[a-z0-9]+:default$/);
  await source.files.write('note.txt', 'now');
  assert.equal(await ask(source), '2');
  const named = await source.createSnapshot({ name: 'mine:v1' });
  assert.deepEqual([named.snapshotId, named.names], ['default/mine:v1', ['default/mine']]);
  assert.deepEqual(
    (await source.listSnapshots().nextItems()).map(({ snapshotId }) => snapshotId),
    [named.snapshotId, unnamed.snapshotId],
  );
  await source.kill();

  assert.deepEqual((await Sandbox.listSnapshots({ sandboxId: source.sandboxId }).nextItems()).length, 2);
  assert.deepEqual(
    (await Sandbox.listSnapshots({ name: 'mine' }).nextItems()).map(({ snapshotId }) => snapshotId),
    [named.snapshotId],
  );
  const [old, young] = await Promise.all([
    Sandbox.create(unnamed.snapshotId, { timeoutMs }),
    Sandbox.create('mine:v1', { timeoutMs }),
  ]);
  assert.deepEqual([await old.files.read('note.txt'), await young.files.read('note.txt')], ['then', 'now']);
  // The processes that ran then continue from there.
  assert.deepEqual([await ask(old), await ask(young)], ['2', '3']);
  assert.equal((await old.commands.run('echo $E2B_SANDBOX_ID')).stdout, `${old.sandboxId}\n`);
  await assert.rejects(Sandbox.deleteSnapshot(unnamed.snapshotId), SandboxError);
  await Promise.all([old.kill(), young.kill()]);
  assert.equal(await Sandbox.deleteSnapshot(unnamed.snapshotId), true);
  assert.equal(await Sandbox.deleteSnapshot(unnamed.snapshotId), false);
  await assert.rejects(Sandbox.create(unnamed.snapshotId), SandboxError);
  // The other one is untouched, even by a restart of the platform.
  await platform.kill9();
  await platform.restart();
  const late = await Sandbox.create('mine:v1', { timeoutMs });
  assert.equal(await ask(late), '3');
  await late.kill();
});

test('forks begin as their source is, go their own ways, and outlive it; each can be paused', async () => {
  const source = await counting();
  await source.files.write('note.txt', 'shared');
  const before = await source.getInfo();
  const forks = (await source.fork({ count: 3, timeoutMs })).map(fork => {
    if (fork instanceof Error) throw fork;
    return fork;
  });
  assert.equal(new Set([source, ...forks].map(({ sandboxId }) => sandboxId)).size, 4);
  assert.deepEqual(await Promise.all(forks.map(ask)), ['2', '2', '2']);
  assert.equal(await ask(source), '2');
  assert.equal(await ask(forks[0]!), '3');
  for (const fork of forks) {
    assert.equal(await fork.files.read('note.txt'), 'shared');
    assert.deepEqual((await fork.getInfo()).metadata, { of: 'source' });
    await fork.files.write('note.txt', fork.sandboxId);
  }
  assert.equal(await source.files.read('note.txt'), 'shared');
  assert.deepEqual((await source.getInfo()).endAt, before.endAt);
  await source.kill();
  const [first] = forks;
  assert.equal(await first!.pause(), true);
  await assert.rejects(first!.fork(), SandboxError);
  await first!.connect();
  assert.deepEqual([await ask(first!), await first!.files.read('note.txt')], ['4', first!.sandboxId]);
  // A fork of a fork.
  const [grandchild] = await first!.fork({ timeoutMs });
  if (!(grandchild instanceof Sandbox)) throw grandchild;
  assert.equal(await ask(grandchild), '5');
  await Promise.all([grandchild, ...forks].map(fork => fork.kill()));
});

test('what can’t be snapshotted or forked says so', async () => {
  await assert.rejects(Sandbox.createSnapshot('i00000000000000000000'), SandboxNotFoundError);
  await assert.rejects(Sandbox.fork('i00000000000000000000'), SandboxNotFoundError);
  const sandbox = await Sandbox.create({ timeoutMs });
  await assert.rejects(sandbox.createSnapshot({ name: 'somebody-else/x' }), /400/);
  await assert.rejects(sandbox.fork({ count: 101 }), /400/);
  await sandbox.kill();
});

test('each sandbox has a host name of its own, also what was made of another one, and sudo is content with it', async () => {
  const source = await Sandbox.create({ timeoutMs });
  const names = async (sandbox: Sandbox) => {
    const { stdout, stderr } = await sandbox.commands.run(
      'sudo hostname; cat /etc/hostname; getent ahostsv4 $(hostname) | head -n 1 | tr -s " " | cut -d " " -f 1; grep -c ^127.0.1.1 /etc/hosts',
    );
    assert.equal(stderr, '');
    return stdout.trim().split('\n');
  };
  const ownNames = ({ sandboxId }: Sandbox) => [sandboxId, sandboxId, '127.0.1.1', '1'];
  assert.deepEqual(await names(source), ownNames(source));
  const [fork] = await source.fork({ timeoutMs });
  assert.ok(fork instanceof Sandbox);
  const { snapshotId } = await source.createSnapshot();
  const made = await Sandbox.create(snapshotId, { timeoutMs });
  for (const sandbox of [fork, made]) assert.deepEqual(await names(sandbox), ownNames(sandbox));
  await fork.pause();
  await fork.connect();
  assert.deepEqual(await names(fork), ownNames(fork));
  for (const sandbox of [fork, made, source]) await sandbox.kill();
  await Sandbox.deleteSnapshot(snapshotId);
});
