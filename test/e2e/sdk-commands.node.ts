import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CommandExitError, Sandbox, SandboxError, TimeoutError } from 'e2b';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

let platform: TestPlatform;
let sandbox: Sandbox;
before(async () => {
  platform = await startPlatform();
  Object.assign(process.env, platform.env);
  sandbox = await Sandbox.create();
});
after(() => platform[Symbol.asyncDispose]());

test('output and exit code of a command', async () => {
  const result = await sandbox.commands.run('echo out; echo err >&2');
  assert.deepEqual([result.stdout, result.stderr, result.exitCode], ['out\n', 'err\n', 0]);
});

test('a command that fails throws with its exit code and output', async () => {
  await assert.rejects(sandbox.commands.run('echo partly; exit 7'), (error: unknown) => {
    assert.ok(error instanceof CommandExitError);
    assert.deepEqual([error.exitCode, error.stdout], [7, 'partly\n']);
    return true;
  });
});

test('a program that is not there ends with 127', async () => {
  await assert.rejects(
    sandbox.commands.run('no-such-program'),
    (error: unknown) => error instanceof CommandExitError && error.exitCode === 127,
  );
});

test('commands run as user in its home unless told otherwise', async () => {
  assert.equal((await sandbox.commands.run('whoami; pwd; echo $HOME')).stdout, 'user\n/home/user\n/home/user\n');
  assert.equal((await sandbox.commands.run('whoami; pwd', { user: 'root' })).stdout, 'root\n/root\n');
  assert.equal((await sandbox.commands.run('sudo whoami')).stdout, 'root\n');
});

test('working directory and environment of one command', async () => {
  const { stdout } = await sandbox.commands.run('pwd; echo $COLOUR', { cwd: '/tmp', envs: { COLOUR: 'green' } });
  assert.equal(stdout, '/tmp\ngreen\n');
  assert.equal((await sandbox.commands.run('echo "[$COLOUR]"')).stdout, '[]\n');
  await assert.rejects(sandbox.commands.run('true', { cwd: '/no/such/folder' }));
});

test('output comes while the command runs', async () => {
  const seen: string[] = [];
  const handle = await sandbox.commands.run('echo first; read line; echo second $line', {
    background: true,
    stdin: true,
    onStdout: text => void seen.push(text),
  });
  await waitFor('the first line', () => seen.join('') === 'first\n');
  await sandbox.commands.sendStdin(handle.pid, 'from outside\n');
  assert.equal((await handle.wait()).stdout, 'first\nsecond from outside\n');
});

test('a background command is listed, outlives its starter’s connection, is connected to, and killed', async () => {
  const handle = await sandbox.commands.run('sleep 1000', { background: true });
  await handle.disconnect();
  const listed = await sandbox.commands.list();
  assert.ok(listed.some(process => process.pid === handle.pid));
  const again = await sandbox.commands.connect(handle.pid);
  assert.equal(await sandbox.commands.kill(handle.pid), true);
  await assert.rejects(again.wait(), CommandExitError);
  assert.equal(await sandbox.commands.kill(handle.pid), false);
});

test('a command over its time is ended', async () => {
  await assert.rejects(sandbox.commands.run('sleep 30', { timeoutMs: 500 }), TimeoutError);
  await waitFor(
    'the process to be gone',
    async () => (await sandbox.commands.run('pgrep -x sleep || echo none')).stdout === 'none\n',
  );
});

test('twenty megabytes of output arrive whole', async () => {
  const { stdout } = await sandbox.commands.run('head -c 20000000 /dev/zero | tr "\\0" x', { timeoutMs: 60_000 });
  assert.equal(stdout.length, 20_000_000);
  assert.ok(/^x+$/.test(stdout));
});

test('fifty commands at once each get their own output', async () => {
  const results = await Promise.all(Array.from({ length: 50 }, (_, index) => sandbox.commands.run(`echo ${index}`)));
  assert.deepEqual(
    results.map(result => Number(result.stdout)),
    Array.from({ length: 50 }, (_, index) => index),
  );
});

test('what the base template promises is there', async () => {
  const tools = [
    'python --version',
    'python3 --version',
    'node --version',
    'npm --version',
    'yarn --version',
    'git --version',
    'gh --version',
    'gcc --version',
    'curl --version',
    'ss --version',
    'pgrep --version',
  ];
  for (const tool of tools) assert.equal((await sandbox.commands.run(tool)).exitCode, 0, tool);
  assert.match(
    (await sandbox.commands.run('node --version; python --version')).stdout,
    /^v20\.\d+\.\d+\nPython 3\.11\.\d+\n$/,
  );
  assert.equal((await sandbox.commands.run('stat -c %a /code /usr/local')).stdout, '777\n777\n');
  assert.equal((await sandbox.commands.run('TERM=xterm-256color tput colors')).stdout, '256\n');
  assert.match((await sandbox.commands.run('echo "$SHELL|$PS1"')).stdout, /^\/bin\/bash\|\\w \\\$ \n$/);
});

test('a command in a sandbox that is killed under it fails, and does not look like a success', async () => {
  const doomed = await Sandbox.create();
  const running = doomed.commands.run('sleep 1000');
  running.catch(() => {});
  await waitFor('the command to run', async () => (await doomed.commands.list()).length > 0);
  await doomed.kill();
  await assert.rejects(running, SandboxError);
  await assert.rejects(doomed.commands.run('true'), SandboxError);
});
