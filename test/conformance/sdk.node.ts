import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Sandbox } from 'e2b';
import { findRunsc } from '../../src/node/drivers/gvisor/find-runsc.ts';
import { getByHost } from '../support/by-host.ts';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

// The second driver through the front door, for the one template that the operator named.

let platform: TestPlatform;
let sandbox: Sandbox;

const runsc = findRunsc(join(repository, 'dist/runsc'));
const skip = runsc.found ? false : runsc.reason;

before(async () => {
  if (skip) return;
  platform = await startPlatform({ ATOLL_TEMPLATE_DRIVERS: 'base=gvisor', ATOLL_POOL_SIZE: '1' });
  Object.assign(process.env, platform.env);
  sandbox = await Sandbox.create();
});
after(() => platform?.[Symbol.asyncDispose]());

const run = async (command: string, of = sandbox) => (await of.commands.run(command)).stdout.trim();

test('a sandbox of the template has a kernel of its own, whatever the template is called by', { skip }, async () => {
  const host = readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim();
  const { templateId } = await sandbox.getInfo();
  const byId = await Sandbox.create(templateId);
  for (const one of [sandbox, byId]) assert.notEqual(await run('uname -r', one), host);
  await byId.kill();
});

test('commands, files, terminals and watches work', { skip }, async () => {
  await sandbox.files.write('dir/file', 'text\n');
  assert.equal(await run('cat dir/file; id -un; df -m --output=size / | tail -n 1 | grep -c .'), 'text\nuser\n1');
  const events: string[] = [];
  const watch = await sandbox.files.watchDir('dir', event => void events.push(`${event.type} ${event.name}`));
  await run('echo more > dir/other');
  await waitFor('the event', () => events.includes('create other'));
  await watch.stop();
  let output = '';
  const terminal = await sandbox.pty.create({
    cols: 90,
    rows: 30,
    onData: bytes => void (output += Buffer.from(bytes).toString()),
  });
  await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('echo $((6*7))-$(tput cols); exit 3\n'));
  await assert.rejects(terminal.wait(), { exitCode: 3 });
  assert.match(output, /42-90/);
});

test('services on all addresses and on the loopback alone are reached by their hosts', { skip }, async () => {
  for (const [address, port] of [
    ['0.0.0.0', 8000],
    ['127.0.0.1', 8001],
    ['::1', 8002],
  ] as const) {
    await sandbox.commands.run(`python3 -m http.server ${port} --bind ${address} --directory /home/user/dir`, {
      background: true,
    });
    await waitFor(
      `port ${port}`,
      async () => (await getByHost(platform.ready.url, sandbox.getHost(port), '/file')).body === 'text\n',
    );
  }
});

test('a policy about the way out holds, and can be changed while it runs', { skip }, async () => {
  const attempt = `python3 -c 'import socket; socket.create_connection(("198.51.100.1", 80), 2)' 2>&1 | tail -n 1`;
  const closed = await Sandbox.create({ allowInternetAccess: false });
  assert.match(await run(attempt, closed), /refused/);
  await closed.kill();
  await sandbox.updateNetwork({ denyOut: ['198.51.100.0/24'] });
  assert.match(await run(attempt), /refused/);
});

test('what runs outlives the end of the platform', { skip }, async () => {
  await sandbox.commands.run('sleep 1000', { background: true });
  await platform.kill9();
  await platform.restart();
  const again = await Sandbox.connect(sandbox.sandboxId);
  assert.equal(await run('pgrep -c sleep', again), '1');
});

test(
  'a pause keeps files and refuses to keep memory; a snapshot is for others, and forks are refused',
  { skip },
  async () => {
    await assert.rejects(sandbox.pause(), /gVisor/);
    assert.equal(await run('pgrep -c sleep'), '1');
    await sandbox.pause({ keepMemory: false });
    assert.equal((await sandbox.getInfo()).state, 'paused');
    const resumed = await Sandbox.connect(sandbox.sandboxId);
    assert.equal(await run('cat dir/file; pgrep -c sleep || true', resumed), 'text\n0');
    const { snapshotId } = await resumed.createSnapshot();
    const child = await Sandbox.create(snapshotId);
    assert.equal(await run('cat dir/file; uname -r', child), `text\n${await run('uname -r', resumed)}`);
    await assert.rejects(resumed.fork({ count: 1 }), /gVisor/);
    await child.kill();
  },
);

test('a kill leaves nothing of it', { skip }, async () => {
  await sandbox.kill();
  const left = () =>
    readdirSync('/run/atoll').flatMap(number => {
      const owner = (() => {
        try {
          return readFileSync(`/run/atoll/${number}/owner`, 'utf8');
        } catch {
          return '';
        }
      })();
      return owner === platform.ready.dataDir ? readdirSync(`/run/atoll/${number}/gvisor`) : [];
    });
  await waitFor('everything to be gone', () => left().length === 0);
});
