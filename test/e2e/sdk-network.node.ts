import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CommandExitError, Sandbox } from 'e2b';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

// The suite egress has its own internet and tests what passes; here the published client sets policies.

let platform: TestPlatform;
before(async () => {
  platform = await startPlatform({ ATOLL_LOG_LEVEL: 'info' });
  Object.assign(process.env, platform.env);
});
after(() => platform[Symbol.asyncDispose]());

test('a sandbox starts under a policy of domains, header rules and a proxy, and can be given another', async () => {
  const network = {
    denyOut: ['0.0.0.0/0'],
    allowOut: ['allowed.example', '*.wild.example', '203.0.113.7'],
    rules: { 'allowed.example': [{ transform: { headers: { Authorization: 'Bearer of-the-rule' } } }] },
  };
  const sandbox = await Sandbox.create({ network });
  const { network: shown } = await sandbox.getInfo();
  assert.deepEqual(shown?.allowOut, network.allowOut);
  await assert.rejects(
    sandbox.commands.run('curl -sS --max-time 5 --resolve other.example:443:203.0.113.8 https://other.example/'),
    CommandExitError,
  );
  await waitFor("the denial in the sandbox's log", async () => {
    const answer = await platform.api('GET', `/v2/sandboxes/${sandbox.sandboxId}/logs?level=warn&search=denied`);
    return (await answer.text()).includes('denied: host other.example port 443 by rule denyOut 0.0.0.0/0');
  });
  assert.doesNotMatch(platform.log(), /of-the-rule/);
  const { stdout } = await sandbox.commands.run(
    'cat /etc/ssl/certs/ca-certificates.crt | tail -n 3; env | grep NODE_EXTRA_CA_CERTS',
  );
  assert.match(stdout, /NODE_EXTRA_CA_CERTS/);
  await sandbox.updateNetwork({ allowInternetAccess: false });
  await assert.rejects(sandbox.commands.run('curl -sS --max-time 5 http://203.0.113.7/'), CommandExitError);
  await sandbox.kill();
  await assert.rejects(Sandbox.create({ network: { allowOut: ['allowed.example'] } }), /denyOut/);
  const proxied = await Sandbox.create({
    network: { egressProxy: { address: '203.0.113.9:1080', username: 'u', password: 'p' } },
  });
  assert.doesNotMatch(JSON.stringify(await proxied.getInfo()), /"password"/);
  await proxied.kill();
});
