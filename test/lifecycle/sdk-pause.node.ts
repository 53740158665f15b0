import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Sandbox, SandboxNotFoundError } from 'e2b';
import { getByHost } from '../support/by-host.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

/**
 * How often the sandbox with everything in it is paused and resumed; a tenth of the time after a crash of the platform.
 */
const cycles = Number(process.env['LIFECYCLE_CYCLES'] ?? 6);

let platform: TestPlatform;
before(async () => {
  platform = await startPlatform();
  Object.assign(process.env, platform.env);
});
after(() => platform[Symbol.asyncDispose]());

const bootId = async (sandbox: Sandbox) =>
  (await sandbox.commands.run('cat /proc/sys/kernel/random/boot_id')).stdout.trim();
const listed = async (state: 'running' | 'paused', id: string) =>
  (await Sandbox.list({ query: { state: [state], metadata: { id } } }).nextItems()).map(item => item.sandboxId);

/** A web server, a Node.js process with 64 MB of state, a shell loop that counts, and an open terminal. */
async function furnish(sandbox: Sandbox) {
  await sandbox.files.write('www/index.html', 'still served');
  await sandbox.files.write(
    'state.js',
    `const block = Buffer.alloc(64 << 20, 7); let asked = 0;
     require('http').createServer((_, answer) => answer.end(++asked + ' ' + block.reduce((sum, byte) => sum + byte, 0))).listen(8001);`,
  );
  // Without a limit of its own a command has 60 s, and on a busy machine all of this takes longer.
  await sandbox.commands.run('python3 -m http.server 8000', { background: true, cwd: 'www', timeoutMs: 0 });
  await sandbox.commands.run('node state.js', { background: true, timeoutMs: 0 });
  await sandbox.commands.run('i=0; while :; do i=$((i+1)); echo $i >> count; sleep 0.02; done', {
    background: true,
    timeoutMs: 0,
  });
  let screen = '';
  const terminal = await sandbox.pty.create({
    cols: 80,
    rows: 24,
    onData: bytes => void (screen += new TextDecoder().decode(bytes)),
    timeoutMs: 0,
  });
  await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('remembered=yes\n'));
  await waitFor('the terminal', () => screen.includes('remembered=yes'));
  return terminal.pid;
}

const byHost = (sandbox: Sandbox, port: number) => getByHost(platform.ready.url, sandbox.getHost(port), '/');

async function askTerminal(sandbox: Sandbox, pid: number): Promise<void> {
  let screen = '';
  const terminal = await sandbox.pty.connect(pid, {
    onData: bytes => void (screen += new TextDecoder().decode(bytes)),
    timeoutMs: 0,
  });
  await sandbox.pty.sendInput(pid, new TextEncoder().encode('echo "<$remembered>"\n'));
  await waitFor('the terminal to remember', () => screen.includes('<yes>'));
  await terminal.disconnect();
}

test(`a server, 64 MB of state, a counting loop and an open terminal live through ${cycles} pauses, some of them with a crash`, async () => {
  let sandbox = await Sandbox.create({ timeoutMs: 600_000 });
  const terminal = await furnish(sandbox);
  const asked = async () => {
    const [count, sum] = (
      await waitFor('the state', async () => (await byHost(sandbox, 8001)).body.match(/^\d+ \d+$/)?.[0])
    )
      .split(' ')
      .map(Number);
    assert.equal(sum, 7 * (64 << 20));
    return count ?? 0;
  };
  const boot = await bootId(sandbox);
  let before = await asked();
  for (let cycle = 0; cycle < cycles; cycle++) {
    assert.equal(await sandbox.pause(), true);
    if (cycle % 3 === 1) {
      await platform.kill9();
      await platform.restart();
    }
    sandbox = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 600_000 });
    assert.deepEqual(await byHost(sandbox, 8000), { status: 200, body: 'still served' });
    assert.equal(await asked(), before + 1);
    before++;
    await askTerminal(sandbox, terminal);
  }
  const reached = async () => (await sandbox.files.read('count')).trim().split('\n').map(Number);
  const { length } = await reached();
  await waitFor('the loop to count on', async () => (await reached()).length > length);
  const counts = await reached();
  assert.deepEqual(
    counts,
    Array.from(counts, (_, index) => index + 1),
  );
  assert.equal(await bootId(sandbox), boot);
  await sandbox.kill();
});

test('pause answers true once; the sandbox is listed as paused, is not running, and its commands fail as those of a gone one', async () => {
  const sandbox = await Sandbox.create({ metadata: { id: 'listed' }, timeoutMs: 600_000 });
  const started = await sandbox.getInfo();
  assert.equal(await sandbox.pause(), true);
  assert.equal(await sandbox.pause(), false);
  const paused = await sandbox.getInfo();
  assert.equal(paused.state, 'paused');
  assert.equal(paused.startedAt.getTime(), started.startedAt.getTime());
  assert.ok(Math.abs(paused.endAt.getTime() - Date.now()) < 60_000);
  assert.deepEqual([await listed('running', 'listed'), await listed('paused', 'listed')], [[], [sandbox.sandboxId]]);
  assert.equal(await sandbox.isRunning(), false);
  await assert.rejects(sandbox.commands.run('true'), SandboxNotFoundError);
  await assert.rejects(sandbox.setTimeout(1000), SandboxNotFoundError);
  assert.equal((await byHost(sandbox, 8000)).status, 502);

  const again = await sandbox.connect({ timeoutMs: 60_000 });
  assert.equal(again.sandboxId, sandbox.sandboxId);
  assert.deepEqual([await listed('running', 'listed'), await listed('paused', 'listed')], [[sandbox.sandboxId], []]);
  const resumed = await sandbox.getInfo();
  // A new lifetime, of the requested length.
  assert.ok(resumed.startedAt > paused.endAt);
  assert.equal(Math.round((resumed.endAt.getTime() - resumed.startedAt.getTime()) / 1000), 60);
  assert.equal(await sandbox.kill(), true);
  await assert.rejects(sandbox.pause(), SandboxNotFoundError);
});

test('a stream that is open when its sandbox is paused breaks, and does not look as if it had ended', async () => {
  const sandbox = await Sandbox.create({ timeoutMs: 600_000 });
  const command = await sandbox.commands.run('echo started; sleep 1000', { background: true, timeoutMs: 0 });
  await waitFor('the command', () => command.stdout.includes('started'));
  const ended = command.wait().then(
    result => `exit ${result.exitCode}`,
    (error: Error) => error.name,
  );
  await sandbox.pause();
  assert.doesNotMatch(await ended, /^exit|CommandExitError/);
  await sandbox.connect();
  // The command itself goes on, and can be followed again.
  const again = await sandbox.commands.connect(command.pid, { timeoutMs: 0 });
  assert.equal(await again.kill(), true);
  await sandbox.kill();
});

test('with keepMemory: false the files are kept and a resume boots: another boot ID, no processes, empty tmpfs', async () => {
  const sandbox = await Sandbox.create({ timeoutMs: 600_000, envs: { COLOUR: 'blue' } });
  await sandbox.files.write('note.txt', 'kept');
  await sandbox.commands.run('touch /dev/shm/gone; sudo touch /run/gone; sleep 1000', {
    background: true,
    timeoutMs: 0,
  });
  await waitFor('the file', () => sandbox.files.exists('/run/gone'));
  const boot = await bootId(sandbox);
  assert.equal(await sandbox.pause({ keepMemory: false }), true);
  assert.equal((await sandbox.getInfo()).state, 'paused');
  await sandbox.connect();
  assert.equal(await sandbox.files.read('note.txt'), 'kept');
  assert.deepEqual(
    [await sandbox.files.exists('/dev/shm/gone'), await sandbox.files.exists('/run/gone')],
    [false, false],
  );
  assert.deepEqual((await sandbox.commands.list()).length, 0);
  assert.notEqual(await bootId(sandbox), boot);
  assert.equal(
    (await sandbox.commands.run('echo $COLOUR $E2B_SANDBOX_ID; pgrep -c sleep || true')).stdout,
    `blue ${sandbox.sandboxId}\n0\n`,
  );
  await sandbox.kill();
});

test('onResume: reboot boots a sandbox whose memory was kept; on a running one it does nothing', async () => {
  const sandbox = await Sandbox.create({ timeoutMs: 600_000 });
  const boot = await bootId(sandbox);
  await sandbox.connect({ onResume: 'reboot' });
  assert.equal(await bootId(sandbox), boot);
  await sandbox.pause();
  await sandbox.connect({ onResume: 'reboot' });
  assert.notEqual(await bootId(sandbox), boot);
  await sandbox.kill();
});

test('many who connect at once get one running sandbox', async () => {
  const sandbox = await Sandbox.create({ timeoutMs: 600_000 });
  await sandbox.commands.run('echo $$ > pid; exec sleep 1000', { background: true, timeoutMs: 0 });
  await sandbox.pause();
  const connected = await Promise.all(Array.from({ length: 12 }, () => Sandbox.connect(sandbox.sandboxId)));
  const outputs = await Promise.all(connected.map(each => each.commands.run('kill -0 $(cat pid) && echo alive')));
  assert.deepEqual(new Set(outputs.map(({ stdout }) => stdout)), new Set(['alive\n']));
  await sandbox.kill();
});

test('a sandbox that is to be paused when its time is over is, and traffic wakes it where it may', async () => {
  const [awake, asleep, cold] = await Promise.all([
    Sandbox.create({ timeoutMs: 600_000, lifecycle: { onTimeout: 'pause', autoResume: true } }),
    Sandbox.create({ timeoutMs: 600_000, lifecycle: { onTimeout: 'pause' } }),
    Sandbox.create({ timeoutMs: 600_000, lifecycle: { onTimeout: { action: 'pause', keepMemory: false } } }),
  ]);
  assert.deepEqual((await awake.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: true });
  for (const sandbox of [awake, asleep]) {
    await sandbox.files.write('index.html', 'woken');
    await sandbox.commands.run('python3 -m http.server 8000', { background: true, timeoutMs: 0 });
    await waitFor('the server', async () => (await byHost(sandbox, 8000)).body === 'woken');
  }
  for (const sandbox of [awake, asleep, cold]) await sandbox.setTimeout(0);
  await waitFor('all to be paused', async () =>
    (await Promise.all([awake, asleep, cold].map(each => each.getInfo()))).every(({ state }) => state === 'paused'),
  );

  // The first request is answered, and so are many that arrive at once.
  const answers = await Promise.all(Array.from({ length: 8 }, () => byHost(awake, 8000)));
  assert.deepEqual(answers, Array(8).fill({ status: 200, body: 'woken' }));
  const { startedAt, endAt } = await awake.getInfo();
  assert.ok(endAt.getTime() - startedAt.getTime() >= 300_000);
  // The agent's own port wakes it too, for callers with the token.
  await awake.pause();
  assert.equal(await awake.files.read('index.html'), 'woken');

  for (const sandbox of [asleep, cold]) {
    assert.deepEqual(JSON.parse((await byHost(sandbox, 8000)).body), {
      sandboxId: sandbox.sandboxId,
      message: 'The sandbox was not found',
      code: 502,
    });
    assert.equal((await sandbox.getInfo()).state, 'paused');
  }
  await cold.connect();
  assert.equal((await cold.commands.run('echo up')).stdout, 'up\n');
  await Promise.all([awake, asleep, cold].map(sandbox => sandbox.kill()));
});

test('after a crash of the platform paused sandboxes are there, are woken and are killed', async () => {
  const [woken, killed] = await Promise.all([
    Sandbox.create({ timeoutMs: 600_000, lifecycle: { onTimeout: 'pause', autoResume: true } }),
    Sandbox.create({ timeoutMs: 600_000 }),
  ]);
  await woken.files.write('note.txt', 'kept');
  await Promise.all([woken.pause(), killed.pause({ keepMemory: false })]);
  await platform.kill9();
  await platform.restart();
  assert.equal((await killed.getInfo()).state, 'paused');
  assert.equal(await woken.files.read('note.txt'), 'kept');
  assert.equal(await killed.kill(), true);
  assert.equal(await killed.kill(), false);
  await woken.kill();
});
