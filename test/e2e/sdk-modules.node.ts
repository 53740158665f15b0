import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CommandExitError, FilesystemEventType, Sandbox } from 'e2b';
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

test('a terminal takes input, is resized, is connected to, and ends with its shell’s code', async () => {
  let output = '';
  const text = new TextEncoder();
  const terminal = await sandbox.pty.create({
    cols: 80,
    rows: 24,
    onData: bytes => void (output += Buffer.from(bytes).toString()),
  });
  await sandbox.pty.sendInput(terminal.pid, text.encode('echo $((6*7))-$(tput cols)\n'));
  await waitFor('the first size', () => output.includes('42-80'));
  await sandbox.pty.resize(terminal.pid, { cols: 132, rows: 40 });
  await sandbox.pty.sendInput(terminal.pid, text.encode('echo now-$(tput cols)\n'));
  await waitFor('the second size', () => output.includes('now-132'));
  let second = '';
  const again = await sandbox.pty.connect(terminal.pid, {
    onData: bytes => void (second += Buffer.from(bytes).toString()),
  });
  await sandbox.pty.sendInput(terminal.pid, text.encode('echo both\n'));
  await waitFor('both to see it', () => output.includes('both') && second.includes('both'));
  await again.disconnect();
  await sandbox.pty.sendInput(terminal.pid, text.encode('exit\n'));
  assert.equal((await terminal.wait()).exitCode, 0);
  const killed = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => {} });
  assert.equal(await sandbox.pty.kill(killed.pid), true);
  // A signal is answered when it is sent; the process ends after that.
  await assert.rejects(killed.wait(), CommandExitError);
  assert.equal(await sandbox.pty.kill(killed.pid), false);
});

test('a watched folder tells of files made, written, renamed and removed, in folders made meanwhile too', async () => {
  const events: string[] = [];
  const entries: string[] = [];
  await sandbox.files.makeDir('watched');
  const watch = await sandbox.files.watchDir(
    'watched',
    event => {
      events.push(`${event.type} ${event.name}`);
      if (event.entry) entries.push(event.entry.path);
    },
    { recursive: true, includeEntry: true },
  );
  await sandbox.commands.run(
    'cd watched && mkdir -p a/b/c && echo x > a/b/c/deep && echo y > top && mv top renamed && chmod 600 renamed && rm renamed',
  );
  await waitFor('the last event', () => events.includes(`${FilesystemEventType.REMOVE} renamed`));
  for (const [type, name] of [
    ['CREATE', 'a/b/c/deep'],
    ['CREATE', 'top'],
    ['WRITE', 'top'],
    ['RENAME', 'top'],
    ['CREATE', 'renamed'],
    ['CHMOD', 'renamed'],
  ] as const) {
    assert.ok(
      events.includes(`${FilesystemEventType[type]} ${name}`),
      `${type} ${name} is missing in ${events.join(', ')}`,
    );
  }
  assert.ok(entries.includes('/home/user/watched/a/b/c/deep'));
  await watch.stop();
});

test('metadata of a file is kept, listed, and replaced by the next upload', async () => {
  await sandbox.files.write('tagged', 'one', { metadata: { origin: 'test', run: '7' } });
  assert.deepEqual((await sandbox.files.getInfo('tagged')).metadata, { origin: 'test', run: '7' });
  await sandbox.files.write('tagged', 'two', { metadata: { run: '8' } });
  assert.deepEqual((await sandbox.files.getInfo('tagged')).metadata, { run: '8' });
});

test('a repository is made, committed to, branched, cloned and pulled', async () => {
  const { git, commands } = sandbox;
  await git.init('/home/user/repo', { initialBranch: 'main' });
  await git.configureUser('Ada', 'ada@example.org');
  await sandbox.files.write('repo/file', 'content');
  assert.equal((await git.status('/home/user/repo')).isClean, false);
  await git.add('/home/user/repo');
  await git.commit('/home/user/repo', 'First');
  assert.equal((await git.status('/home/user/repo')).isClean, true);
  await git.createBranch('/home/user/repo', 'side');
  assert.deepEqual((await git.branches('/home/user/repo')).branches.toSorted(), ['main', 'side']);
  await commands.run(
    'touch repo/.git/git-daemon-export-ok && (git daemon --base-path=/home/user --listen=127.0.0.1 --reuseaddr >/dev/null 2>&1 &) && sleep 0.5',
  );
  await git.clone('git://127.0.0.1/repo', { path: '/home/user/copy' });
  assert.equal(await sandbox.files.read('copy/file'), 'content');
});

test('input goes to a command, and its end is told', async () => {
  const command = await sandbox.commands.run('cat; echo done', { background: true, stdin: true });
  await sandbox.commands.sendStdin(command.pid, 'typed\n');
  await sandbox.commands.closeStdin(command.pid);
  assert.equal((await command.wait()).stdout, 'typed\ndone\n');
});
