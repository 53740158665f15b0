import { expect, test } from 'bun:test';
import { Sandbox } from 'e2b';
import { startPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

// The kernel lets nobody see what a process has mapped while it forks. At its memory limit that lasts for minutes, and a
// node that waited for it was ended, with the work of all others.
test('a pause of a sandbox that forks at its memory limit holds nobody else up', async () => {
  await using platform = await startPlatform();
  const { apiKey, url, domain } = platform.ready;
  const client = { apiKey, apiUrl: url, sandboxUrl: url, domain };
  const bomb = await Sandbox.create({ ...client, timeoutMs: 600_000 });
  const program = 'import os, time\nfor _ in range(20): os.fork()\ntime.sleep(1000)';
  await bomb.commands.run(`python3 -c '${program}'`, { background: true, user: 'root', timeoutMs: 0 });
  await waitFor('the bomb', async () => {
    const [sample] = (await bomb.getMetrics()).slice(-1);
    return sample !== undefined && sample.memUsed > 0.9 * sample.memTotal;
  });
  let pausing = true;
  const paused = platform.api('POST', `/sandboxes/${bomb.sandboxId}/pause`).finally(() => (pausing = false));
  let others = 0;
  while (pausing) {
    const sandbox = await Sandbox.create(client);
    await sandbox.kill();
    others++;
  }
  const { status } = await paused;
  expect([204, 503]).toContain(status);
  expect(others).toBeGreaterThan(0);
  expect(platform.log()).not.toContain('stands still');
  await bomb.kill();
}, 240_000);
