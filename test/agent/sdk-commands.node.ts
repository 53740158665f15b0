import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandExitError, InvalidArgumentError, type Sandbox, TimeoutError } from 'e2b';
import { startSdkSandbox, type SdkSandbox } from './support/sdk.ts';

let started: SdkSandbox;
let sandbox: Sandbox;
before(async () => {
  started = await startSdkSandbox();
  ({ sandbox } = started);
});
after(() => started[Symbol.asyncDispose]());

test('the sandbox is running', async () => {
  assert.equal(await sandbox.isRunning(), true);
});

test('run answers output and exit code, and throws where it is not zero', async () => {
  const result = await sandbox.commands.run('echo out; echo err >&2');
  assert.deepEqual([result.stdout, result.stderr, result.exitCode, result.error], ['out\n', 'err\n', 0, undefined]);
  await assert.rejects(sandbox.commands.run('echo partly; exit 7'), (error: unknown) => {
    assert.ok(error instanceof CommandExitError);
    assert.deepEqual([error.exitCode, error.stdout, error.error], [7, 'partly\n', 'exit status 7']);
    return true;
  });
});

test('run takes user, cwd and envs', async () => {
  const { stdout } = await sandbox.commands.run('whoami; pwd; echo $COLOUR $E2B_SANDBOX', {
    user: 'root',
    cwd: '/tmp',
    envs: { COLOUR: 'green' },
  });
  assert.equal(stdout, 'root\n/tmp\ngreen true\n');
  assert.equal((await sandbox.commands.run('whoami; pwd')).stdout, 'user\n/home/user\n');
  await assert.rejects(sandbox.commands.run('true', { cwd: '/no/such' }), InvalidArgumentError);
});

test('output comes while the command runs, split inside characters or not', async () => {
  const seen: string[] = [];
  const text = 'ü漢🎉'.repeat(20_000);
  const result = await sandbox.commands.run(`python3 -c "print('ü漢🎉' * 20000, end='')"`, {
    onStdout: part => void seen.push(part),
  });
  assert.equal(seen.join(''), text);
  assert.equal(result.stdout, text);
});

test('a background command is fed, listed, connected to, disconnected from and killed', async () => {
  const handle = await sandbox.commands.run('cat; sleep 1000', { background: true, stdin: true });
  await handle.sendStdin('one\n');
  await sandbox.commands.sendStdin(handle.pid, new TextEncoder().encode('two\n'));
  const again = await sandbox.commands.connect(handle.pid);
  await handle.closeStdin();
  assert.ok(
    (await sandbox.commands.list()).some(
      process => process.pid === handle.pid && process.args.includes('cat; sleep 1000'),
    ),
  );
  await handle.disconnect();
  assert.equal(await sandbox.commands.kill(handle.pid), true);
  await assert.rejects(
    again.wait(),
    (error: unknown) => error instanceof CommandExitError && error.exitCode === -1 && error.error === 'signal: killed',
  );
  assert.equal(await sandbox.commands.kill(handle.pid), false);
  assert.equal(await again.kill(), false);
});

test('the exit of a command that was disconnected from is still told', async () => {
  const handle = await sandbox.commands.run('sleep 0.3; exit 5', { background: true });
  await handle.disconnect();
  const again = await sandbox.commands.connect(handle.pid);
  await assert.rejects(again.wait(), (error: unknown) => error instanceof CommandExitError && error.exitCode === 5);
});

test('a timeout ends the command', async () => {
  await assert.rejects(sandbox.commands.run('sleep 1000', { timeoutMs: 300 }), TimeoutError);
  while ((await sandbox.commands.list()).some(process => process.args.includes('sleep 1000'))) await sleep(10);
});

test('a server that is started in the background outlives its command', async () => {
  await sandbox.commands.run('python3 -m http.server 0 > /tmp/server.log 2>&1 & echo $! > /tmp/server.pid');
  const { stdout } = await sandbox.commands.run(
    'kill -0 $(cat /tmp/server.pid) && echo alive; kill $(cat /tmp/server.pid)',
  );
  assert.equal(stdout, 'alive\n');
});

test('a hundred commands at once are kept apart', async () => {
  const results = await Promise.all(
    Array.from({ length: 100 }, (_, index) => sandbox.commands.run(`echo ${index}; sleep 0.1; echo ${index}`)),
  );
  results.forEach(({ stdout }, index) => assert.equal(stdout, `${index}\n${index}\n`));
});

test('a terminal is created, typed into, resized, connected to and killed', async () => {
  let seen = '';
  const waiting: { text: string; resolve: () => void }[] = [];
  const onData = (bytes: Uint8Array) => {
    seen += new TextDecoder().decode(bytes);
    for (const { text, resolve } of waiting) if (seen.includes(text)) resolve();
  };
  const shows = (text: string) =>
    new Promise<void>(resolve => {
      waiting.push({ text, resolve });
      onData(new Uint8Array());
    });
  const type = (text: string) => sandbox.pty.sendInput(handle.pid, new TextEncoder().encode(text));
  const handle = await sandbox.pty.create({ cols: 100, rows: 30, onData, envs: { MARK: 'from-envs' }, cwd: '/tmp' });
  await type('echo "$MARK:$PWD:$TERM:$(tput cols)"\n');
  await shows('from-envs:/tmp:xterm-256color:100');
  await sandbox.pty.resize(handle.pid, { cols: 61, rows: 20 });
  await type('echo "now:$(tput cols)"\n');
  await shows('now:61');
  const second = await sandbox.pty.connect(handle.pid, { onData });
  await type('echo both-see-this\n');
  await shows('both-see-this');
  await handle.disconnect();
  assert.equal(await sandbox.pty.kill(handle.pid), true);
  await assert.rejects(
    second.wait(),
    (error: unknown) => error instanceof CommandExitError && error.error === 'signal: killed',
  );
  assert.equal(await sandbox.pty.kill(handle.pid), false);
});

test('the exit code of a shell in a terminal is its own', async () => {
  const handle = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => {} });
  await sandbox.pty.sendInput(handle.pid, new TextEncoder().encode('exit 12\n'));
  await assert.rejects(handle.wait(), (error: unknown) => error instanceof CommandExitError && error.exitCode === 12);
});
