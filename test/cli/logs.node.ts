import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Sandbox } from 'e2b';
import { controlTokenHeader } from '../../src/protocol/agent.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

// What happened in sandboxes, as people read it: through the API, caused by the published SDK.
type Entry = { timestamp: string; level: string; message: string; fields: Record<string, string> };

let platform: TestPlatform;
before(async () => {
  platform = await startPlatform();
  Object.assign(process.env, platform.env);
});
after(() => platform[Symbol.asyncDispose]());

async function logs(sandboxId: string, query = 'direction=forward'): Promise<Entry[]> {
  const answer = await platform.api('GET', `/v2/sandboxes/${sandboxId}/logs?${query}`);
  assert.equal(answer.status, 200);
  return ((await answer.json()) as { logs: Entry[] }).logs;
}

/** The entries, once one with this message is among them. */
const logsWith = (sandboxId: string, message: string | RegExp) =>
  waitFor(`the log to say ${message}`, async () => {
    const entries = await logs(sandboxId);
    return (
      entries.some(entry => (typeof message === 'string' ? entry.message === message : message.test(entry.message))) &&
      entries
    );
  });
const messages = (entries: Entry[]) => entries.map(entry => entry.message);

test('what was done in a sandbox is told in order, its secrets are not, and it stays when the sandbox is gone', async () => {
  const sandbox = await Sandbox.create({ envs: { SERVICE_TOKEN: 'correct-horse-battery' } });
  const { sandboxId } = sandbox;
  await sandbox.commands.run('echo hello; echo "it is $SERVICE_TOKEN" >&2; exit 3').catch(() => {});
  await sandbox.commands.run('true; echo --password opensesame', { envs: { MORE: 'not-written-down' } });
  await sandbox.files.write('/home/user/dir/a.txt', 'the content of the file');
  await sandbox.files.rename('/home/user/dir/a.txt', '/home/user/dir/b.txt');
  await sandbox.files.remove('/home/user/dir/b.txt');
  await sandbox.commands.run('echo the last words');
  // Without waiting: earlier entries must not be lost.
  await sandbox.kill();
  const entries = await logsWith(sandboxId, 'killed');
  assert.match(entries[0]?.message ?? '', /^created from template /);
  assert.deepEqual(entries[0]?.fields['logger'], 'sandbox');
  const told = messages(entries);
  const expected = [
    'started: echo hello; echo "it is $SERVICE_TOKEN" >&2; exit 3',
    'ended: exit status 3',
    'started: true; echo --password ***',
    '--password ***',
    'wrote /home/user/dir/a.txt',
    'moved /home/user/dir/a.txt to /home/user/dir/b.txt',
    'removed /home/user/dir/b.txt',
    'the last words',
    'killed',
  ];
  assert.deepEqual(
    expected.map(message => told.indexOf(message)),
    expected.map(message => told.indexOf(message)).toSorted((a, b) => a - b),
  );
  assert.ok(
    expected.every(message => told.includes(message)),
    told.join('\n'),
  );
  for (const message of ['hello', 'it is ***']) assert.ok(told.includes(message), told.join('\n'));
  assert.deepEqual(entries.find(entry => entry.message === 'ended: exit status 3')?.level, 'warn');
  const whole = JSON.stringify(entries);
  for (const secret of ['correct-horse-battery', 'not-written-down', 'opensesame', 'the content of the file'])
    assert.ok(!whole.includes(secret), whole);
});

test('pages, levels, search and both directions choose what is answered', async () => {
  const sandbox = await Sandbox.create();
  const { sandboxId } = sandbox;
  await sandbox.commands.run('for i in $(seq 30); do echo line $i; done; exit 1').catch(() => {});
  const everything = await logsWith(sandboxId, 'ended: exit status 1');
  assert.deepEqual((await logs(sandboxId, '')).reverse(), everything);
  assert.deepEqual(
    messages(await logs(sandboxId, 'direction=forward&search=LINE%202')),
    messages(everything).filter(text => text.includes('line 2')),
  );
  assert.deepEqual(messages(await logs(sandboxId, 'level=warn')), ['ended: exit status 1']);
  const paged: Entry[] = [];
  for (let cursor = 0; ;) {
    const page = await logs(sandboxId, `direction=forward&limit=7&cursor=${cursor}`);
    paged.push(...page);
    if (page.length < 7) break;
    cursor = Date.parse(page.at(-1)?.timestamp ?? '') + 1;
  }
  assert.deepEqual(paged, everything);
  for (const query of ['limit=1001', 'level=loud', 'direction=up', `search=${'x'.repeat(257)}`, 'cursor=x']) {
    assert.equal((await platform.api('GET', `/v2/sandboxes/${sandboxId}/logs?${query}`)).status, 400, query);
  }
  await sandbox.kill();
});

test('a denied connection is told with the rule that denied it', async () => {
  const sandbox = await Sandbox.create({ network: { denyOut: ['203.0.113.0/24'] } });
  await sandbox.commands.run('timeout 2 bash -c "echo > /dev/tcp/203.0.113.7/443"').catch(() => {});
  await logsWith(sandbox.sandboxId, /^denied: host 203\.0\.113\.7 port 443 by rule \S+/);
  await sandbox.kill();
  await logsWith(sandbox.sandboxId, /^\d+ bytes sent, \d+ received, [1-9]\d* times refused$/);
});

test('a sandbox that writes more than anybody reads is cut down, and nothing else suffers', async () => {
  const [loud, quiet] = await Promise.all([Sandbox.create(), Sandbox.create()]);
  const command = loud.commands.run('yes "a line of output" | head -c 50000000', { timeoutMs: 60_000 });
  await quiet.commands.run('echo quiet');
  await logsWith(quiet.sandboxId, 'quiet');
  assert.equal((await command).stdout.length, 50_000_000);
  const entries = await logsWith(loud.sandboxId, /^\d+ bytes of stdout are not in the log/);
  const seconds = (Date.parse(entries.at(-1)?.timestamp ?? '') - Date.parse(entries[0]?.timestamp ?? '')) / 1000;
  assert.ok(entries.length < 600 + 110 * seconds, `${entries.length} entries in ${seconds} s`);
  await Promise.all([loud.kill(), quiet.kill()]);
});

test('the log goes on over a pause, a resume, a fork and the death of the platform', async () => {
  const sandbox = await Sandbox.create();
  const { sandboxId } = sandbox;
  await sandbox.commands.run('echo before');
  await sandbox.pause();
  const resumed = await Sandbox.connect(sandboxId);
  await resumed.commands.run('echo resumed');
  await logsWith(sandboxId, 'resumed');
  await platform.kill9();
  await platform.restart();
  await resumed.commands.run('echo after the crash');
  const told = messages(await logsWith(sandboxId, 'after the crash'));
  const once = ['before', 'resumed', 'after the crash'];
  assert.deepEqual(
    told.filter(message => once.includes(message)),
    once,
  );
  assert.ok(
    told.some(message => message.startsWith('paused with')) && told.some(message => message.startsWith('resumed')),
    told.join('\n'),
  );

  const [fork] = (await (await platform.api('POST', `/sandboxes/${sandboxId}/fork`, {})).json()) as {
    sandbox: { sandboxID: string };
  }[];
  assert.ok(fork);
  const copy = await Sandbox.connect(fork.sandbox.sandboxID);
  await copy.commands.run('echo in the fork');
  const own = messages(await logsWith(copy.sandboxId, 'in the fork'));
  assert.ok(!own.includes('before') && own[0]?.startsWith('created from'), own.join('\n'));
  await Promise.all([copy.kill(), resumed.kill()]);
});

test('an agent that is killed is followed by one that tells more', async () => {
  const sandbox = await Sandbox.create();
  await sandbox.commands.run('echo before');
  await sandbox.commands.run('kill -9 $(pgrep -x agent)', { user: 'root' }).catch(() => {});
  await waitFor(
    'the agent to be back',
    async () =>
      (await sandbox.isRunning()) &&
      (await sandbox.commands.run('echo again').then(
        () => true,
        () => false,
      )),
  );
  const told = await logsWith(sandbox.sandboxId, 'again');
  assert.ok(
    messages(told).some(message => message.startsWith('the agent was started again')),
    messages(told).join('\n'),
  );
  await sandbox.kill();
});

test('only the platform gets the log from the agent', async () => {
  const sandbox = await Sandbox.create({ secure: false });
  for (const token of ['', 'x'.repeat(32)]) {
    const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49983', [controlTokenHeader]: token };
    assert.equal((await fetch(new URL('/logs', platform.ready.url), { headers })).status, 404);
  }
  await sandbox.kill();
});

test('unknown and foreign sandboxes answer alike', async () => {
  for (const path of ['/sandboxes/iunknownunknown12345/logs', '/v2/sandboxes/iunknownunknown12345/logs']) {
    const answer = await platform.api('GET', path);
    assert.equal(answer.status, 404);
    assert.deepEqual(Object.keys((await answer.json()) as object), ['code', 'message']);
  }
});
