import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { GitUpstreamError, type Sandbox } from 'e2b';
import { startSdkSandbox, type SdkSandbox } from './support/sdk.ts';

let started: SdkSandbox;
let sandbox: Sandbox;
before(async () => {
  started = await startSdkSandbox();
  ({ sandbox } = started);
});
after(() => started[Symbol.asyncDispose]());

// One story, because each step needs the one before.
test('a repository from init to pull, over a git daemon inside', async () => {
  const { git, commands, files } = sandbox;
  await git.configureUser('Some Body', 'some@body.example');
  assert.equal(await git.getConfig('user.name', { scope: 'global' }), 'Some Body');

  await git.init('/home/user/repo', { initialBranch: 'trunk' });
  await files.write('repo/README', 'first\n');
  const untracked = await git.status('/home/user/repo');
  assert.deepEqual(
    [untracked.currentBranch, untracked.fileStatus.map(({ name, status }) => [name, status])],
    ['trunk', [['README', 'untracked']]],
  );
  await git.add('/home/user/repo');
  await git.commit('/home/user/repo', 'Begin');
  assert.equal((await git.status('/home/user/repo')).isClean, true);

  await git.createBranch('/home/user/repo', 'side');
  await git.checkoutBranch('/home/user/repo', 'trunk');
  assert.deepEqual((await git.branches('/home/user/repo')).branches.sort(), ['side', 'trunk']);
  await git.deleteBranch('/home/user/repo', 'side');

  await files.write('repo/README', 'changed\n');
  await git.restore('/home/user/repo', { paths: ['README'] });
  assert.equal(await files.read('repo/README'), 'first\n');

  await commands.run(
    'git init --quiet --bare /home/user/served/repo.git && touch /home/user/served/repo.git/git-daemon-export-ok',
  );
  await commands.run(
    'git daemon --reuseaddr --listen=127.0.0.1 --port=19418 --base-path=/home/user/served --enable=receive-pack --detach --pid-file=/tmp/daemon.pid',
  );
  try {
    await git.remoteAdd('/home/user/repo', 'origin', 'git://127.0.0.1:19418/repo.git');
    assert.equal(await git.remoteGet('/home/user/repo', 'origin'), 'git://127.0.0.1:19418/repo.git');
    await assert.rejects(git.pull('/home/user/repo'), GitUpstreamError);
    await git.push('/home/user/repo', { remote: 'origin', branch: 'trunk', setUpstream: true });

    await git.clone('git://127.0.0.1:19418/repo.git', { path: '/home/user/clone', branch: 'trunk' });
    await files.write('clone/second', 'x');
    await git.add('/home/user/clone', { files: ['second'] });
    await git.commit('/home/user/clone', 'Go on', { authorName: 'Else', authorEmail: 'else@body.example' });
    await git.push('/home/user/clone');
    await git.pull('/home/user/repo');
    assert.equal(await files.exists('repo/second'), true);

    await git.reset('/home/user/repo', { mode: 'hard', target: 'HEAD~1' });
    assert.equal(await files.exists('repo/second'), false);
    assert.equal((await git.status('/home/user/repo')).behind, 1);
  } finally {
    await commands.run('kill $(cat /tmp/daemon.pid)');
  }
});
