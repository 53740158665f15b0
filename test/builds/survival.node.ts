import { Sandbox, Template } from 'e2b';
import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

let platform: TestPlatform;
let connection: { apiUrl: string; apiKey: string; sandboxUrl: string; domain: string };

before(async () => {
  platform = await startPlatform();
  const { url, apiKey, domain } = platform.ready;
  connection = { apiUrl: url, apiKey, sandboxUrl: url, domain };
});
after(() => platform[Symbol.asyncDispose]());

const definition = (slow: string) =>
  Template().fromTemplate('base').runCmd('date +%N > /tmp/first').runCmd(slow).runCmd('cp /tmp/first /tmp/second');

test('a build that a crash cuts off ends with the reason; what it finished is cached, and the next one is whole', async () => {
  const slow = 'echo halfway; sleep 600';
  const begun = await Template.buildInBackground(definition(slow), 'cut-off', connection);
  for (let seen = ''; !seen.includes('halfway\n');) {
    const { logEntries } = await Template.getBuildStatus(begun, connection);
    seen = logEntries.map(entry => `${entry.message}\n`).join('');
    await new Promise(resolve => setTimeout(resolve, 100));
  }
  await platform.kill9();
  await platform.restart();
  const status = await (async () => {
    for (;;) {
      const news = await Template.getBuildStatus(begun, connection);
      if (news.status !== 'building') return news;
      await new Promise(resolve => setTimeout(resolve, 100));
    }
  })();
  assert.equal(status.status, 'error');
  assert.match(status.reason?.message ?? '', /restarted/);
  await assert.rejects(Sandbox.create('cut-off', connection));

  const messages: string[] = [];
  await Template.build(definition('true'), 'cut-off', {
    ...connection,
    onBuildLogs: entry => messages.push(entry.message),
  });
  assert.ok(
    messages.some(message => message.startsWith('CACHED [builder 1/3]')),
    messages.join('\n'),
  );
  const sandbox = await Sandbox.create('cut-off', connection);
  const { stdout } = await sandbox.commands.run('cmp /tmp/first /tmp/second && echo same');
  assert.equal(stdout, 'same\n');
  await sandbox.kill();
});

test('a crash while a layer is written leaves none behind, and the next build has the right content', async () => {
  const layers = join(platform.ready.dataDir, 'node/layers');
  const unfinished = () => readdirSync(layers).filter(name => name.startsWith('making-'));
  const isWriting = () =>
    unfinished().some(name => (statSync(join(layers, name, 'image'), { throwIfNoEntry: false })?.size ?? 0) > 0);
  const big = Template()
    .fromTemplate('base')
    .runCmd('head -c 200000000 /dev/urandom > ~/big && sha256sum ~/big > ~/sum')
    .runCmd('sha256sum --check ~/sum');
  await Template.buildInBackground(big, 'cut-writing', connection);
  await waitFor('a layer to be written', isWriting, 60_000);
  await platform.kill9();
  assert.equal(unfinished().length, 1);
  await platform.restart();
  assert.deepEqual(unfinished(), []);
  await Template.build(big, 'cut-writing', connection);
  const sandbox = await Sandbox.create('cut-writing', connection);
  assert.match((await sandbox.commands.run('sha256sum --check ~/sum')).stdout, /OK/);
  await sandbox.kill();
});
