import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { Sandbox } from 'e2b';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { killGroup, runToEnd, start, textOf, waitFor, type Finished } from '../support/process.ts';

// The published command line as its users use it, with nothing but an API key.
const cli = [process.execPath, join(repository, 'node_modules/@e2b/cli/dist/index.js')];

let platform: TestPlatform;
let home: string;
let env: NodeJS.ProcessEnv;

before(async () => {
  platform = await startPlatform();
  home = mkdtempSync(join(tmpdir(), 'atoll-cli-'));
  const { url, apiKey } = platform.ready;
  // Its settings and caches are kept in the home folder.
  env = {
    PATH: process.env['PATH'],
    HOME: home,
    NO_COLOR: '1',
    E2B_API_KEY: apiKey,
    E2B_API_URL: url,
    E2B_SANDBOX_URL: url,
  };
  Object.assign(process.env, platform.env);
});
after(async () => {
  await platform[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

const e2b = (args: string[], options: { input?: string } = {}): Promise<Finished> =>
  runToEnd([...cli, ...args], { env, cwd: home, ...options });

async function ok(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await e2b(args);
  assert.equal(exitCode, 0, stdout + stderr);
  // It colours its logs in any case.
  return stripVTControlCharacters(stdout);
}

test('templates are listed', async () => {
  const listed = JSON.parse(await ok('template', 'list', '--format', 'json')) as { aliases: string[] }[];
  assert.ok(listed.some(({ aliases }) => aliases.includes('base')));
});

test('a sandbox is created, listed, described, paused, resumed and killed', async () => {
  const id = (await ok('sandbox', 'create', '--detach', 'base', '--timeout', '120')).trim();
  assert.match(id, /^[a-z0-9]+$/);
  const list = async (state: string) =>
    (JSON.parse(await ok('sandbox', 'list', '--format', 'json', '--state', state)) as { sandboxId: string }[]).map(
      sandbox => sandbox.sandboxId,
    );
  assert.ok((await list('running')).includes(id));
  assert.match(await ok('sandbox', 'list'), new RegExp(`${id}\\s+\\S+\\s+base.*Running`));
  const info = JSON.parse(await ok('sandbox', 'info', id, '--format', 'json')) as { sandboxId: string; state: string };
  assert.deepEqual([info.sandboxId, info.state], [id, 'running']);
  assert.match(await ok('sandbox', 'pause', id), /has been paused/);
  assert.ok((await list('paused')).includes(id) && !(await list('running')).includes(id));
  assert.match(await ok('sandbox', 'resume', id), /has been resumed/);
  assert.match(await ok('sandbox', 'kill', id), /has been killed/);
  assert.match((await e2b(['sandbox', 'kill', id])).stderr, /wasn't found/);
});

test('exec gives output, input, user, directory, environment and exit code', async () => {
  const sandbox = await Sandbox.create();
  const id = sandbox.sandboxId;
  const plain = await e2b(['sandbox', 'exec', id, 'sh', '-c', 'echo out; echo err >&2; exit 7']);
  assert.deepEqual([plain.exitCode, plain.stdout, plain.stderr], [7, 'out\n', 'err\nexit status 7\n']);
  const settled = await e2b([
    'sandbox',
    'exec',
    '-u',
    'root',
    '-c',
    '/tmp',
    '-e',
    'COLOUR=blue',
    id,
    'echo $(id -un) $(pwd) $COLOUR',
  ]);
  assert.equal(settled.stdout, 'root /tmp blue\n');
  const piped = await e2b(['sandbox', 'exec', id, 'wc', '-c'], { input: 'x'.repeat(100_000) });
  assert.deepEqual([piped.exitCode, piped.stdout.trim()], [0, '100000']);
  await sandbox.kill();
});

test('connect opens a terminal', async () => {
  const sandbox = await Sandbox.create();
  const id = sandbox.sandboxId;
  // A terminal for the command line itself.
  const command = [...cli, 'sandbox', 'connect', id].map(word => `'${word}'`).join(' ');
  const child = start(['script', '--quiet', '--return', '--command', command, '/dev/null'], {
    env: { ...env, TERM: 'xterm' },
    cwd: home,
  });
  const output = textOf(child, 'stdout');
  try {
    await waitFor('a prompt', () => /[$#] /.test(output()), 30_000);
    child.stdin?.write('echo $((6*7)) in $(tty)\n');
    await waitFor('the terminal to answer', () => /42 in \/dev\/pts\/\d/.test(output()), 30_000);
    child.stdin?.write('exit\n');
    await waitFor('the command line to end', () => child.exitCode !== null, 30_000);
    assert.equal(child.exitCode, 0, output());
  } finally {
    killGroup(child, 'SIGKILL');
  }
  await sandbox.kill();
});

test('logs tell what was done, by level and logger, and follow a sandbox to its end', async () => {
  const sandbox = await Sandbox.create();
  const id = sandbox.sandboxId;
  await sandbox.commands.run('echo said; exit 4').catch(() => {});
  await sandbox.files.write('/tmp/a.txt', 'content');
  const lines = async (...args: string[]) =>
    (await ok('sandbox', 'logs', id, '--format', 'json', ...args))
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as { level: string; logger: string; message: string; timestamp: string });
  const everything = await lines();
  assert.ok(everything.some(line => line.logger === 'process' && line.message === 'said'));
  assert.ok(everything.every(line => !Number.isNaN(Date.parse(line.timestamp))));
  assert.deepEqual(
    (await lines('--level', 'warn')).map(line => line.message),
    ['ended: exit status 4'],
  );
  assert.deepEqual(
    (await lines('--loggers', 'filesystem')).map(line => line.message),
    ['wrote /tmp/a.txt'],
  );
  assert.match(await ok('sandbox', 'logs', id), /message: 'said'/);

  const child = start([...cli, 'sandbox', 'logs', '--follow', id], { env, cwd: home });
  const text = textOf(child, 'stdout');
  const output = () => stripVTControlCharacters(text());
  try {
    await waitFor('the first entries', () => output().includes("message: 'said'"), 30_000);
    await sandbox.commands.run('echo while followed');
    await waitFor('what comes', () => output().includes("message: 'while followed'"), 30_000);
    await sandbox.kill();
    await waitFor('the end', () => child.exitCode !== null, 30_000);
    assert.match(output(), /sandbox is closed|not found/);
    assert.equal(output().split("message: 'while followed'").length, 2);
  } finally {
    killGroup(child, 'SIGKILL');
  }
  assert.match(await ok('sandbox', 'logs', id), /message: 'killed'/);
});

test('metrics are shown', async () => {
  const sandbox = await Sandbox.create();
  const id = sandbox.sandboxId;
  const [sample] = await waitFor(
    'the first sample',
    async () => {
      const text = (await ok('sandbox', 'metrics', id, '--format', 'json')).trim();
      return (
        text.startsWith('{') &&
        text.split('\n').map(line => JSON.parse(line) as { cpuCount: number; memTotal: number; diskTotal: number })
      );
    },
    30_000,
  );
  assert.ok(sample && sample.cpuCount >= 1 && sample.memTotal > 0 && sample.diskTotal > 0, JSON.stringify(sample));
  await sandbox.kill();
});

test('snapshots are taken, listed and deleted', async () => {
  const sandbox = await Sandbox.create();
  const id = sandbox.sandboxId;
  assert.match(await ok('sandbox', 'snapshot', 'create', id, '--name', 'cli-snapshot'), /Created snapshot/);
  const listed = JSON.parse(await ok('sandbox', 'snapshot', 'list', '--format', 'json')) as {
    snapshotId: string;
    names: string[];
  }[];
  const [snapshot] = listed.filter(({ names }) => names.some(name => name.includes('cli-snapshot')));
  assert.ok(snapshot, JSON.stringify(listed));
  assert.match(await ok('sandbox', 'snapshot', 'delete', snapshot.snapshotId), /has been deleted/);
  await sandbox.kill();
});

test('kill --all ends what is there', async () => {
  await Sandbox.create();
  assert.match(await ok('sandbox', 'kill', '--all'), /Killed \d+ running sandboxes/);
});

test('without a key or with a wrong one, it says so and fails', async () => {
  for (const key of [undefined, `e2b_${'0'.repeat(40)}`]) {
    const { exitCode, stdout, stderr } = await runToEnd([...cli, 'sandbox', 'list'], {
      env: { ...env, E2B_API_KEY: key },
      cwd: home,
    });
    assert.notEqual(exitCode, 0);
    assert.match(stdout + stderr, /E2B_API_KEY|[Uu]nauthor|API key/);
  }
});
