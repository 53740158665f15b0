import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { writeNpmPackage } from '../../scripts/release/npm-package.mjs';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { killGroup, runToEnd, start, textOf, waitFor, type Finished } from '../support/process.ts';

// The command `atoll` as a person uses it on an installation, with only a URL and a key.
const atoll = join(repository, 'bin/atoll');

let platform: TestPlatform;
let home: string;
let env: NodeJS.ProcessEnv;
let sandboxId: string;

before(async () => {
  platform = await startPlatform();
  home = mkdtempSync(join(tmpdir(), 'atoll-home-'));
  env = { PATH: process.env['PATH'], HOME: home, ATOLL_DATA_DIR: join(home, 'none') };
  const { url, apiKey } = platform.ready;
  const signedIn = await run(['login', url], `${apiKey}\n`);
  assert.equal(signedIn.exitCode, 0, signedIn.stderr);
  sandboxId = await ok('sandbox', 'create', '--timeout', '600', '--env', 'COLOUR=blue', 'base');
});
after(async () => {
  await platform[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

const run = (args: string[], input?: string): Promise<Finished> =>
  runToEnd([atoll, ...args], { env, cwd: home, ...(input !== undefined && { input }) });

async function ok(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await run(args);
  assert.equal(exitCode, 0, stdout + stderr);
  return stdout.trim();
}

test('the login is this user’s alone, and a wrong key is refused', async () => {
  const file = join(home, '.config/atoll/login.json');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const kept = readFileSync(file, 'utf8');
  const refused = await run(['login', platform.ready.url, '--key', `e2b_${'0'.repeat(40)}`]);
  assert.equal(refused.exitCode, 1);
  assert.equal(readFileSync(file, 'utf8'), kept);
  assert.equal((await run(['login', 'nowhere', '--key', 'k'])).exitCode, 2);
});

test('the package for npm is all of it, without the checkout', { timeout: 300_000 }, async () => {
  const [tree, output, prefix] = ['tree', 'output', 'prefix'].map(name => join(home, name));
  mkdirSync(join(tree!, 'bin'), { recursive: true });
  mkdirSync(output!);
  cpSync(join(repository, 'dist/atoll'), join(tree!, 'bin/atoll'));
  cpSync(join(repository, 'LICENSE'), join(tree!, 'LICENSE'));
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const facts = { version: '1.2.3', description: 'of a test', architecture, epoch: 1_700_000_000 };
  await writeNpmPackage(tree!, output!, facts);
  const file = join(output!, `atoll-1.2.3-${architecture}.npm.tar.gz`);
  const install = ['npm', 'install', '--global', '--offline', '--prefix', prefix!, file];
  const installed = await runToEnd(install, { env, cwd: home });
  assert.equal(installed.exitCode, 0, installed.stderr);
  const elsewhere = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await runToEnd([join(prefix!, 'bin/atoll'), ...args], { env, cwd: home });
    assert.equal(exitCode, 0, stdout + stderr);
    return stdout.trim();
  };
  assert.ok((await elsewhere('sandbox', 'list')).includes(sandboxId));
  assert.equal(await elsewhere('sandbox', 'exec', sandboxId, '--', 'printenv', 'COLOUR'), 'blue');
  assert.match(await elsewhere('completion', 'bash'), /complete .*atoll/);
  assert.ok((await elsewhere('__complete', '--', 'sandbox', 'info', '')).split('\n').includes(sandboxId));
  const stranger = { ...env, HOME: join(home, 'stranger') };
  const refused = await runToEnd([join(prefix!, 'bin/atoll'), 'sandbox', 'list'], { env: stranger, cwd: home });
  assert.equal(refused.exitCode, 1);
  assert.match(refused.stderr, /start one where the whole release is installed, .*`atoll login`/);
});

test('exec has the output, input and exit code of the command', async () => {
  const ended = await run(
    ['sandbox', 'exec', sandboxId, '--', 'sh', '-c', 'echo "$COLOUR  $0"; echo err >&2; exit 7', "it's"],
    '',
  );
  assert.deepEqual([ended.exitCode, ended.stdout, ended.stderr], [7, "blue  it's\n", 'err\n']);
  const piped = await run(
    ['sandbox', 'exec', '--user', 'root', '--cwd', '/tmp', sandboxId, 'id -un; pwd; wc -c'],
    'x'.repeat(100_000),
  );
  assert.deepEqual(piped.stdout.split('\n').slice(0, 3), ['root', '/tmp', '100000']);
  assert.match((await run(['sandbox', 'exec', sandboxId, 'ls', '--help'], '')).stdout, /Usage: ls/);
  const unknown = await run(['sandbox', 'exec', 'nosuchsandbox', 'true'], '');
  assert.equal(unknown.exitCode, 1);
  assert.match(unknown.stderr, /^atoll sandbox exec: .*nosuchsandbox.*\n$/);
});

test('exec passes any bytes, in and out', async () => {
  const content = Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)));
  writeFileSync(join(home, 'bytes'), Buffer.concat(Array.from({ length: 50 }, () => content)));
  const script = '"$0" sandbox exec "$1" "cat; exit 3" < bytes > same';
  const piped = await runToEnd(['sh', '-c', script, atoll, sandboxId], { env, cwd: home });
  assert.deepEqual([piped.exitCode, piped.stderr], [3, '']);
  assert.ok(readFileSync(join(home, 'same')).equals(readFileSync(join(home, 'bytes'))));
});

test('files are copied in and out', async () => {
  const content = Buffer.from(crypto.getRandomValues(new Uint8Array(50_000)));
  writeFileSync(join(home, 'in.bin'), content);
  await ok('sandbox', 'cp', 'in.bin', `${sandboxId}:/tmp/`);
  await ok('sandbox', 'cp', `${sandboxId}:/tmp/in.bin`, 'out.bin');
  assert.ok(readFileSync(join(home, 'out.bin')).equals(content));
  assert.equal((await run(['sandbox', 'cp', 'in.bin', 'out.bin'])).exitCode, 2);
});

test('a sandbox is paused, resumed, extended, forked and made a template of', async () => {
  const state = async (id: string) =>
    (JSON.parse(await ok('sandbox', 'info', '--json', id)) as { state: string }).state;
  await ok('sandbox', 'pause', sandboxId);
  assert.equal(await state(sandboxId), 'paused');
  const resumed = JSON.parse(await ok('sandbox', 'resume', '--timeout', '300', '--json', sandboxId)) as object;
  assert.equal('sandboxID' in resumed && resumed.sandboxID, sandboxId);
  assert.equal(await state(sandboxId), 'running');
  await ok('sandbox', 'exec', sandboxId, '--', 'touch', '/dev/shm/in-memory');
  await ok('sandbox', 'pause', sandboxId);
  await ok('sandbox', 'resume', '--without-memory', sandboxId);
  assert.equal((await run(['sandbox', 'exec', sandboxId, '--', 'test', '-e', '/dev/shm/in-memory'])).exitCode, 1);
  await ok('sandbox', 'extend', sandboxId, '900');
  const fork = await ok('sandbox', 'fork', sandboxId);
  const template = await ok('sandbox', 'snapshot', '--without-memory', sandboxId);
  const child = await ok('sandbox', 'create', template);
  for (const id of [fork, child]) {
    assert.equal(await state(id), 'running');
    await ok('sandbox', 'kill', id);
  }
  assert.equal((await run(['sandbox', 'info', fork])).exitCode, 1);
  assert.equal(
    await ok('sandbox', 'open', sandboxId, '8000'),
    `http://8000-${sandboxId}.${new URL(platform.ready.url).host}`,
  );
});

test('a folder without a definition is told what makes one', async () => {
  mkdirSync(join(home, 'image'));
  writeFileSync(join(home, 'image/Dockerfile'), 'FROM debian:12');
  const { exitCode, stderr } = await run(['template', 'build', 'image']);
  assert.equal(exitCode, 1);
  assert.match(stderr, /^atoll template build: There is no template\.json in .*`atoll template init .*\n$/);
});

test('what was made is told as the API says it, with --json', async () => {
  const folder = join(home, 'told');
  mkdirSync(folder);
  const define = (command: string) =>
    writeFileSync(
      join(folder, 'template.json'),
      JSON.stringify({ fromTemplate: 'base', steps: [{ type: 'RUN', args: [command] }] }),
    );
  define('true');
  const built = JSON.parse(await ok('template', 'build', '--json', 'told')) as { templateID: string };
  assert.deepEqual(
    { ...built, templateID: '', buildID: '' },
    { templateID: '', buildID: '', status: 'ready', logs: [], logEntries: [] },
  );
  const { names } = JSON.parse(await ok('template', 'publish', '--json', built.templateID)) as { names: string[] };
  assert.match(names.join(' '), /told$/);
  define('exit 3');
  const failed = await run(['template', 'build', '--json', 'told']);
  assert.equal(failed.exitCode, 1);
  const { status, reason } = JSON.parse(failed.stdout) as { status: string; reason: { step: string } };
  assert.deepEqual([status, reason.step], ['error', '1']);
  await ok('template', 'delete', built.templateID);
  const { url } = JSON.parse(await ok('sandbox', 'open', '--json', sandboxId, '8000')) as { url: string };
  assert.equal(url, await ok('sandbox', 'open', sandboxId, '8000'));
});

// Commands without --json, each with the reason.
const withoutJson: Record<string, string> = {
  'sandbox shell': 'a person types into it',
  'sandbox exec': 'its output is that of the command inside',
  ssh: 'its output is that of the shell or command inside',
  'ssh-proxy': 'it carries bytes',
  forward: 'it goes on until it is interrupted',
  'sandbox forward': 'it goes on until it is interrupted',
  'ssh-config': 'it prints lines for a file of OpenSSH',
  completion: 'it prints a program for a shell',
  man: 'it prints a page for man',
};

test('every command has --json, or a reason to have none; the manual and the completion know of it', async () => {
  const lines = (await ok('help')).split('\n').filter(line => line.startsWith('  atoll '));
  const usages = lines.map(line => line.trim().split(/ {2,}/)[0]?.replace('atoll ', '') ?? '');
  assert.ok(usages.length > 70, String(usages.length));
  const missing = usages.filter(usage => !usage.includes('--json'));
  const nameOf = (usage: string) =>
    usage
      .split(' ')
      .filter((word, index) => index < 2 && /^[a-z-]+$/.test(word))
      .join(' ');
  assert.deepEqual(
    missing
      .map(nameOf)
      .map(name => name.replace(/^completion.*/, 'completion'))
      .toSorted(),
    Object.keys(withoutJson).toSorted(),
  );
  const having = usages.length - missing.length;
  assert.equal((await ok('man')).match(/^\\fBatoll .*\\-\\-json/gm)?.length, having);
  assert.deepEqual(await ok('__complete', '--', 'sandbox', 'pause', '--js'), '--json');
});

test('what was done is told by the names of the API, with --json', async () => {
  const json = async (...args: string[]) => JSON.parse(await ok(...args, '--json')) as unknown;
  const sandboxID = await ok('sandbox', 'create');
  assert.deepEqual(await json('sandbox', 'extend', sandboxID, '60'), { sandboxID, timeout: 60 });
  assert.deepEqual(await json('sandbox', 'pause', sandboxID), { sandboxID, state: 'paused' });
  writeFileSync(join(home, 'told.txt'), 'told');
  const inside = { name: 'told.txt', type: 'file', path: '/tmp/told.txt' };
  assert.deepEqual(await json('sandbox', 'cp', 'told.txt', `${sandboxID}:/tmp/`), inside);
  const outside = { name: 'back.txt', type: 'file', path: join(home, 'back.txt') };
  assert.deepEqual(await json('sandbox', 'cp', `${sandboxID}:/tmp/told.txt`, 'back.txt'), outside);
  const killed = await run(['sandbox', 'kill', '--json', 'nosuch', sandboxID]);
  assert.deepEqual([killed.exitCode, JSON.parse(killed.stdout)], [1, [{ sandboxID }]]);

  const [volumeID, secretID] = [
    await ok('volume', 'create', 'told'),
    (await run(['secret', 'create', 'told'], 'a')).stdout,
  ];
  assert.deepEqual(await json('volume', 'delete', 'told'), { volumeID });
  const updated = JSON.parse((await run(['secret', 'update', '--json', 'told'], 'b')).stdout) as Record<
    string,
    unknown
  >;
  assert.deepEqual([updated['secretID'], updated['currentVersion']], [secretID.trim(), 2]);
  assert.deepEqual(await json('secret', 'delete', 'told'), { secretID: 'told' });
  const [id = ''] = (await ok('webhook', 'create', '--event', 'sandbox.lifecycle.killed', 'https://a.example')).split(
    '\n',
  );
  for (const [word, enabled] of [
    ['disable', false],
    ['enable', true],
  ] as const) {
    const webhook = (await json('webhook', word, id)) as Record<string, unknown>;
    assert.deepEqual([webhook['id'], webhook['enabled']], [id, enabled]);
  }
  assert.deepEqual(await json('webhook', 'delete', id), { id });
  const tagged = (await json('template', 'tag', 'base', 'told')) as Record<string, unknown>;
  assert.deepEqual([tagged['tags'], typeof tagged['buildID']], [['told'], 'string']);
  assert.deepEqual(await json('template', 'tag', '--remove', 'base', 'told'), { name: 'base', tags: ['told'] });
  assert.deepEqual(await json('template', 'init', 'begun'), { path: join(home, 'begun/template.json') });
});

test('what the operator did is told by the names of the API, with --json', async () => {
  const json = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await runToEnd([atoll, ...args, '--json'], { env: platform.env });
    assert.equal(exitCode, 0, stderr);
    return JSON.parse(stdout) as Record<string, unknown>;
  };
  const [node] = (await json('node', 'list')) as unknown as { id: string }[];
  assert.ok(node);
  const drained = await json('node', 'drain', node.id, '--dry-run');
  assert.deepEqual([drained['nodeID'], drained['mode']], [node.id, 'none']);
  assert.deepEqual(await json('node', 'cordon', node.id), { id: node.id, status: 'standby' });
  assert.deepEqual(await json('node', 'uncordon', node.id), { id: node.id, status: 'ready' });
  assert.match(String((await json('dashboard'))['url']), /^http.*\//);
  const { id, key } = await json('key', 'create', '--name', 'one');
  assert.match(String(key), /^e2b_/);
  assert.deepEqual(await json('key', 'rename', String(id), 'two'), { id, name: 'two' });
  assert.deepEqual(await json('key', 'revoke', String(id)), { id });
  const { teamID } = await json('team', 'create', 'told', 'Told');
  assert.deepEqual(await json('team', 'rename', 'told', 'Other'), { slug: 'told', name: 'Other' });
  const teams = (await json('team', 'list')) as unknown as Record<string, unknown>[];
  assert.deepEqual(
    teams.filter(({ slug }) => slug === 'told'),
    [{ teamID, slug: 'told', name: 'Other', banned: false, blocked: false }],
  );
  const { userID } = await json('user', 'create', 'Ada');
  assert.deepEqual(await json('user', 'join', String(userID), 'told'), { userID, slug: 'told' });
  assert.deepEqual(await json('user', 'leave', String(userID), 'told'), { userID, slug: 'told' });
  const token = await json('token', 'create', String(userID));
  assert.deepEqual(await json('token', 'revoke', String(userID), String(token['id'])), { id: token['id'] });
  const file = join(home, 'told.backup');
  const { bytes, leftOut, ...written } = await json('backup', file);
  assert.deepEqual([written['file'], bytes, leftOut], [file, statSync(file).size, []]);
});

test('several sandboxes are ended by their IDs, and those that run by their metadata', async () => {
  const [first, second, third] = await Promise.all(
    ['a', 'a', 'b'].map(job => ok('sandbox', 'create', '--metadata', `job=${job}`)),
  );
  const both = await run(['sandbox', 'kill', 'nosuch', first!]);
  assert.equal(both.exitCode, 1);
  assert.match(both.stderr, /"nosuch" was not found\nEnded 1 of 2\./);
  for (const wrong of [[], ['--all', second!], ['--metadata', 'job=a', second!]])
    assert.equal((await run(['sandbox', 'kill', ...wrong])).exitCode, 2);
  const offered = await ok('__complete', '--', 'sandbox', 'kill', first!, '');
  assert.ok(offered.split('\n').includes(second!));
  await ok('sandbox', 'pause', third!);
  await ok('sandbox', 'kill', '--all', '--metadata', 'job=a');
  await ok('sandbox', 'kill', '--all', '--metadata', 'job=b');
  assert.match((await run(['sandbox', 'info', second!])).stderr, /was not found/);
  // A paused sandbox does not count as running.
  assert.match(await ok('sandbox', 'info', third!), /paused/);
  await ok('sandbox', 'kill', third!);
});

test('a command that is left ends inside, with all that it has begun', async () => {
  const inside = async () => (await ok('sandbox', 'exec', '--user', 'root', sandboxId, 'ps -eo args')).split('\n');
  const isGone = async (line: string) => !(await inside()).includes(line);
  const piped = await runToEnd(
    ['sh', '-c', '"$0" sandbox exec "$1" "yes | tee /dev/null" | head -1', atoll, sandboxId],
    { env, cwd: home },
  );
  assert.deepEqual([piped.exitCode, piped.stdout, piped.stderr], [0, 'y\n', '']);
  await waitFor('yes to end', () => isGone('yes'), 30_000);
  // A command that at first ignores the signal, with a program that it would leave behind.
  const line = 'trap "" TERM; echo begun; sleep 86399';
  const child = start([atoll, 'sandbox', 'exec', sandboxId, line], { env, cwd: home });
  const [output, said] = [textOf(child, 'stdout'), textOf(child, 'stderr')];
  try {
    child.stdin?.end();
    await waitFor('its beginning', () => output().includes('begun'), 30_000);
    child.kill('SIGINT');
    await waitFor('the end', () => child.exitCode !== null, 30_000);
    assert.deepEqual([child.exitCode, said()], [130, 'atoll sandbox exec: Interrupted: the command was ended.\n']);
    assert.ok(await isGone('sleep 86399'));
  } finally {
    killGroup(child, 'SIGKILL');
  }
});

test('a log is followed to the end of its sandbox', async () => {
  const id = await ok('sandbox', 'create');
  const child = start([atoll, 'sandbox', 'logs', '--follow', id], { env, cwd: home });
  const output = textOf(child, 'stdout');
  try {
    await run(['sandbox', 'exec', id, 'echo while followed'], '');
    await waitFor('what was said', () => output().includes('while followed'), 30_000);
    await ok('sandbox', 'kill', id);
    await waitFor('the end', () => child.exitCode !== null, 30_000);
    // Its start is reported too, with the command.
    assert.equal(output().match(/^\S+ \w+ +while followed$/gm)?.length, 1);
  } finally {
    killGroup(child, 'SIGKILL');
  }
});

test('a terminal inside ends with the exit code of its shell', async () => {
  const command = [atoll, 'sandbox', 'shell', sandboxId].map(word => `'${word}'`).join(' ');
  const child = start(['script', '--quiet', '--return', '--command', command, '/dev/null'], {
    env: { ...env, TERM: 'xterm' },
    cwd: home,
  });
  const output = textOf(child, 'stdout');
  try {
    await waitFor('a prompt', () => /[$#] /.test(output()), 30_000);
    child.stdin?.write('echo $((6*7)) in $(tty)\n');
    await waitFor('the terminal to answer', () => /42 in \/dev\/pts\/\d/.test(output()), 30_000);
    child.stdin?.write('exit 3\n');
    await waitFor('the end', () => child.exitCode !== null, 30_000);
    assert.equal(child.exitCode, 3, output());
  } finally {
    killGroup(child, 'SIGKILL');
  }
});

test('templates, volumes, secrets and webhooks are managed', async () => {
  const json = async (...args: string[]) => JSON.parse(await ok(...args, '--json')) as Record<string, unknown>[];
  await ok('template', 'tag', 'base', 'stable', 'next');
  await ok('template', 'tag', '--remove', 'base', 'next');
  assert.deepEqual((await json('template', 'tags', 'base')).map(({ tag }) => tag).sort(), ['default', 'stable']);
  assert.match(await ok('template', 'publish', '--private', 'base'), /base/);
  assert.equal((await json('template', 'list'))[0]?.['public'], false);
  assert.match(await ok('template', 'publish', 'base'), /base/);
  assert.match((await run(['template', 'delete', 'base'])).stderr, /^atoll template delete: .*sandbox.*\n$/);
  assert.match(await ok('template', 'init', 'mine'), /mine\/template.json$/);
  assert.equal((await run(['template', 'init', 'mine'])).exitCode, 1);
  assert.match(await ok('template', 'log', 'base'), /layer/);
  assert.match((await run(['template', 'add', '../base'])).stderr, /No template \.\.\/base comes with Atoll/);

  const volumeID = await ok('volume', 'create', 'notes');
  assert.deepEqual(await json('volume', 'list'), [{ volumeID, name: 'notes', sizeMB: 10_240, sandboxCount: 0 }]);
  assert.deepEqual(await json('volume', 'info', 'notes'), { volumeID, name: 'notes' });
  await ok('volume', 'delete', 'notes');
  assert.deepEqual(await json('volume', 'list'), []);

  const secret = await run(['secret', 'create', 'api-token'], 'first\n');
  assert.equal(secret.exitCode, 0, secret.stderr);
  assert.equal((await run(['secret', 'update', 'api-token'], 'second\n')).exitCode, 0);
  const [listed] = await json('secret', 'list');
  assert.deepEqual([listed?.['name'], listed?.['currentVersion']], ['api-token', 2]);
  assert.match((await run(['secret', 'create', 'empty'], '\n')).stderr, /No value was given/);
  await ok('secret', 'delete', 'api-token');

  const [id = '', signed] = (
    await ok('webhook', 'create', '--event', 'sandbox.lifecycle.killed', 'https://receiver.example/x')
  ).split('\n');
  assert.ok(signed);
  await ok('webhook', 'disable', id);
  assert.deepEqual(
    (await json('webhook', 'list')).map(({ name, enabled }) => [name, enabled]),
    [['receiver.example', false]],
  );
  assert.deepEqual(await json('webhook', 'deliveries', id), []);
  await ok('webhook', 'delete', id);
});

test('the operator takes a node out of use, and back', async () => {
  const asOperator = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await runToEnd([atoll, 'node', ...args], { env: platform.env });
    assert.equal(exitCode, 0, stderr);
    return stdout;
  };
  const [node] = JSON.parse(await asOperator('list', '--json')) as { id: string; status: string }[];
  assert.ok(node);
  await asOperator('cordon', node.id);
  assert.match(await asOperator('list'), /standby/);
  assert.equal((await run(['sandbox', 'create'])).exitCode, 1);
  await asOperator('uncordon', node.id);
  await ok('sandbox', 'kill', await ok('sandbox', 'create'));
});

test('the manual is a page that man can show', async () => {
  const page = await ok('man');
  assert.match(page, /^\.TH ATOLL 1/);
  assert.match(page, /atoll sandbox create/);
});

test('shells complete commands, options, and what is there', async () => {
  const complete = async (...words: string[]) => (await ok('__complete', '--', ...words)).split('\n');
  assert.ok((await complete('sandbox', '')).includes('exec'));
  assert.deepEqual(await complete('help', 'sandb'), ['sandbox']);
  assert.deepEqual(await complete('sandbox', 'create', '--au'), ['--auto-pause']);
  assert.ok((await complete('sandbox', 'pause', '')).includes(sandboxId));
  assert.deepEqual(await complete('sandbox', 'create', 'ba'), ['base']);
  // The value of an option is no operand.
  assert.deepEqual(await complete('sandbox', 'create', '--timeout', '60', 'ba'), ['base']);
  assert.deepEqual(await complete('sandbox', 'create', '--timeout', ''), ['']);
  assert.deepEqual(await complete('node', 'drain', 'ID', '--mode', ''), ['move', 'pause', 'wait']);
  assert.ok((await complete('node', 'dr')).includes('drain'));
  assert.deepEqual(await complete('completion', 'z'), ['zsh']);
});

const bashWords =
  'COMP_WORDS=(atoll sandbox cp i); COMP_CWORD=3; compopt() { echo "$2"; }; _atoll; echo "${COMPREPLY[*]}"';

test('bash and fish complete as their completions say, and go on behind a colon', async () => {
  const path = `${join(repository, 'bin')}:${env['PATH'] ?? ''}`;
  for (const shell of ['bash', 'zsh', 'fish']) assert.match(await ok('completion', shell), /__complete/);
  const inShell = async (argv: string[]) => {
    const { exitCode, stdout, stderr } = await runToEnd(argv, { env: { ...env, PATH: path }, cwd: home });
    assert.equal(exitCode, 0, stderr);
    return stdout.trim();
  };
  const bash = `complete() { :; }; source <(atoll completion bash); ${bashWords}`;
  assert.equal(await inShell(['bash', '-c', bash]), `nospace\n${sandboxId}:`);
  // Each shell that the machine has.
  const has = async (shell: string) => (await runToEnd(['sh', '-c', `command -v ${shell}`])).exitCode === 0;
  if (await has('zsh')) await inShell(['zsh', '-n', '-c', await ok('completion', 'zsh')]);
  if (!(await has('fish'))) return;
  const fish = (line: string) => inShell(['fish', '-c', `atoll completion fish | source; complete -C '${line}'`]);
  assert.equal(await fish('atoll sandbox cp i'), `${sandboxId}:`);
  assert.match(await fish('atoll template build /et'), /^\/etc\//);
});
