import { expect, test } from 'bun:test';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { Sandbox } from 'e2b';
import { repository, startPlatform } from '../support/platform.ts';
import { atoll, upOnce } from './support/directory.ts';

const up = [join(repository, 'bin/atoll'), 'up', '--json'];

test('a data directory that is moved while sandboxes run is refused, and what is paused goes on at its new place', async () => {
  await using platform = await startPlatform({ ATOLL_FROZEN_SECONDS: '0' });
  const { ready } = platform;
  const client = { apiKey: ready.apiKey, apiUrl: ready.url, sandboxUrl: ready.url, domain: ready.domain };
  const create = () => Sandbox.create({ ...client, timeoutMs: 600_000 });
  const [paused, running] = [await create(), await create()];
  await paused.commands.run('sleep 4321', { background: true });
  const { snapshotId } = await paused.createSnapshot();
  await paused.pause();
  await platform.stop();

  const moved = `${ready.dataDir}-moved`;
  const there = { ...platform.env, ATOLL_DATA_DIR: moved };
  renameSync(ready.dataDir, moved);
  expect(await upOnce(up, there)).toMatchObject({
    served: false,
    stderr: expect.stringContaining(`${moved} tells of run as those of ${ready.dataDir}: it was moved or copied`),
  });
  expect((await atoll(there, 'down', '--all', '--yes')).exitCode).toBe(1);
  renameSync(moved, ready.dataDir);
  await platform.restart();
  expect((await (await Sandbox.connect(running.sandboxId, client)).commands.run('echo on')).stdout).toBe('on\n');
  await platform.stop();
  expect((await atoll(platform.env, 'down')).exitCode).toBe(0);

  renameSync(ready.dataDir, moved);
  const second = await startPlatform({ ATOLL_DATA_DIR: moved });
  try {
    // The memory belongs to the former agent, which is looked for at the new place.
    const now = { ...client, apiUrl: second.ready.url, sandboxUrl: second.ready.url, domain: second.ready.domain };
    for (const sandbox of [await Sandbox.connect(paused.sandboxId, now), await Sandbox.create(snapshotId, now)])
      expect((await sandbox.commands.run('pgrep -x sleep | wc -l')).stdout).toBe('1\n');
  } finally {
    await second.stop();
    await atoll(second.env, 'down', '--all', '--yes');
    renameSync(moved, ready.dataDir);
  }
}, 240_000);
