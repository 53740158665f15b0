import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AuthenticationError, Sandbox, SandboxError, SandboxNotFoundError } from 'e2b';
import { getByHost } from '../support/by-host.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

let platform: TestPlatform;
before(async () => {
  platform = await startPlatform();
  Object.assign(process.env, platform.env);
});
after(() => platform[Symbol.asyncDispose]());

test('a bare create gives a secured sandbox of the base template that lives for five minutes', async () => {
  const sandbox = await Sandbox.create();
  const info = await sandbox.getInfo();
  assert.match(sandbox.sandboxId, /^[a-z0-9]+$/);
  assert.equal(info.sandboxId, sandbox.sandboxId);
  assert.equal(info.name, 'base');
  assert.equal(info.state, 'running');
  assert.ok(info.memoryMB >= 128 && info.cpuCount >= 1);
  assert.equal(Math.round((info.endAt.getTime() - info.startedAt.getTime()) / 1000), 300);
  assert.equal(await sandbox.isRunning(), true);
  assert.equal(await sandbox.kill(), true);
  assert.equal(await sandbox.isRunning(), false);
  assert.equal(await sandbox.kill(), false);
});

test('metadata is kept and filters the list, whatever it holds', async () => {
  const odd = { user: 'a&b=c d%20é', 'key with space': '1' };
  const sandbox = await Sandbox.create({ metadata: odd });
  const other = await Sandbox.create({ metadata: { user: 'somebody else' } });
  try {
    assert.deepEqual((await sandbox.getInfo()).metadata, odd);
    const found = await Sandbox.list({ query: { metadata: odd } }).nextItems();
    assert.deepEqual(
      found.map(item => item.sandboxId),
      [sandbox.sandboxId],
    );
  } finally {
    await Promise.all([sandbox.kill(), other.kill()]);
  }
});

test('the list pages through every running sandbox once, newest first', async () => {
  const made = await Promise.all(Array.from({ length: 5 }, () => Sandbox.create({ metadata: { suite: 'paging' } })));
  try {
    const pages = Sandbox.list({ limit: 2, query: { metadata: { suite: 'paging' }, state: ['running'] } });
    const items = [];
    while (pages.hasNext) items.push(...(await pages.nextItems()));
    assert.deepEqual(items.map(item => item.sandboxId).sort(), made.map(sandbox => sandbox.sandboxId).sort());
    const starts = items.map(item => item.startedAt.getTime());
    assert.deepEqual(
      starts,
      [...starts].sort((a, b) => b - a),
    );
  } finally {
    await Promise.all(made.map(sandbox => sandbox.kill()));
  }
});

test('setTimeout shortens and extends, and a sandbox whose time is over is gone', async () => {
  const sandbox = await Sandbox.create({ timeoutMs: 60_000 });
  await sandbox.setTimeout(600_000);
  const { endAt } = await sandbox.getInfo();
  assert.ok(endAt.getTime() > Date.now() + 500_000);
  await sandbox.setTimeout(1_000);
  await waitFor('the sandbox to expire', async () => !(await sandbox.isRunning()));
  await assert.rejects(sandbox.getInfo(), SandboxNotFoundError);
  await assert.rejects(sandbox.setTimeout(1_000), SandboxNotFoundError);
});

test('connect finds a running sandbox with everything in it, and only ever extends its time', async () => {
  const sandbox = await Sandbox.create({ timeoutMs: 600_000 });
  try {
    await sandbox.files.write('note.txt', 'still here');
    const before = await sandbox.getInfo();
    const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 5_000 });
    assert.equal(await again.files.read('note.txt'), 'still here');
    assert.equal((await again.getInfo()).endAt.getTime(), before.endAt.getTime());
  } finally {
    await sandbox.kill();
  }
});

test('environment variables of the create reach every process, beside the platform’s own', async () => {
  const sandbox = await Sandbox.create({ envs: { COLOUR: 'blue', E2B_SANDBOX: 'false' } });
  try {
    const { stdout } = await sandbox.commands.run('echo $COLOUR $E2B_SANDBOX $E2B_SANDBOX_ID');
    assert.equal(stdout, `blue true ${sandbox.sandboxId}\n`);
  } finally {
    await sandbox.kill();
  }
});

test('a service inside is reached by its own host', async () => {
  const sandbox = await Sandbox.create();
  try {
    await sandbox.files.write('www/index.html', 'hello from inside');
    await sandbox.commands.run('python3 -m http.server 8000 --bind 127.0.0.1', { background: true, cwd: 'www' });
    const host = sandbox.getHost(8000);
    assert.equal(host, `8000-${sandbox.sandboxId}.${platform.ready.domain}`);
    const { stdout } = await sandbox.commands.run(
      'for i in $(seq 50); do curl -sf localhost:8000 && break; sleep 0.1; done',
    );
    assert.equal(stdout, 'hello from inside');
    assert.deepEqual(await getByHost(platform.ready.url, host, '/'), { status: 200, body: 'hello from inside' });
  } finally {
    await sandbox.kill();
  }
});

test('what can’t be done is told by the error that says so', async () => {
  await assert.rejects(
    Sandbox.create('no-such-template'),
    (error: Error) => error instanceof SandboxError && /404/.test(error.message),
  );
  await assert.rejects(Sandbox.create({ apiKey: `e2b_${'0'.repeat(40)}` }), AuthenticationError);
  await assert.rejects(Sandbox.connect('i00000000000000000000'), SandboxNotFoundError);
  assert.equal(await Sandbox.kill('i00000000000000000000'), false);
  await assert.rejects(Sandbox.create({ timeoutMs: 365 * 24 * 3_600_000 }), SandboxError);
});
