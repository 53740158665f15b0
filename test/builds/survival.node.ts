import { Sandbox, Template } from 'e2b';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

let platform: TestPlatform;
let connection: { apiUrl: string; apiKey: string; sandboxUrl: string; domain: string };

before(async () => {
  platform = await startPlatform();
  const { url, apiKey, domain } = platform.ready;
  connection = { apiUrl: url, apiKey, sandboxUrl: url, domain };
});
after(() => platform[Symbol.asyncDispose]());

const definition = (slow: string) => Template().fromTemplate('base').runCmd('date +%N > /tmp/first').runCmd(slow).runCmd('cp /tmp/first /tmp/second');

test('a build that a crash cuts off ends with the reason; what it finished is cached, and the next one is whole', async () => {
  const slow = 'echo halfway; sleep 600';
  const begun = await Template.buildInBackground(definition(slow), 'cut-off', connection);
  for (let seen = ''; !seen.includes('halfway\n'); ) {
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
  await Template.build(definition('true'), 'cut-off', { ...connection, onBuildLogs: entry => messages.push(entry.message) });
  assert.ok(messages.some(message => message.startsWith('CACHED [builder 1/3]')), messages.join('\n'));
  const sandbox = await Sandbox.create('cut-off', connection);
  const { stdout } = await sandbox.commands.run('cmp /tmp/first /tmp/second && echo same');
  assert.equal(stdout, 'same\n');
  await sandbox.kill();
});
