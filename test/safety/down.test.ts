import { expect, test } from 'bun:test';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { Sandbox } from 'e2b';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { atoll } from './support/directory.ts';

const timeoutMs = 120_000;
const clientOf = ({ ready }: TestPlatform) => ({
  apiKey: ready.apiKey,
  apiUrl: ready.url,
  sandboxUrl: ready.url,
  domain: ready.domain,
});
const idsOf = async (platform: TestPlatform) =>
  ((await (await platform.api('GET', '/v2/sandboxes?state=running,paused')).json()) as { sandboxID: string }[]).map(
    ({ sandboxID }) => sandboxID,
  );

test(
  'stop leaves all, down keeps what is paused and tells the database, down --all removes that too',
  async () => {
    await using platform = await startPlatform({ ATOLL_FROZEN_SECONDS: '60' });
    const create = () => Sandbox.create({ ...clientOf(platform), timeoutMs: 600_000 });
    const [paused, running] = [await create(), await create()];
    await paused.files.write('/home/user/note', 'kept');
    // Its processes are still frozen when the platform goes down.
    await paused.pause();

    expect(await atoll(platform.env, 'stop')).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('run on') });
    expect(await atoll(platform.env, 'stop')).toMatchObject({ exitCode: 0, stderr: 'No platform runs.\n' });
    expect(platform.log()).toContain('Stopping. Sandboxes run on; the next start takes them over.');
    await platform.restart();
    expect((await idsOf(platform)).toSorted()).toEqual([paused.sandboxId, running.sandboxId].toSorted());

    const down = await atoll(platform.env, 'down');
    expect(platform.log()).toContain('Stopping. Sandboxes are ended after it.');
    expect(down).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('Paused ones are kept') });
    await platform.restart();
    expect(platform.log()).not.toContain('gone from its node');
    expect(await idsOf(platform)).toEqual([paused.sandboxId]);
    const events = (await (await platform.api('GET', `/events/sandboxes/${running.sandboxId}`)).json()) as {
      type: string;
      eventData: { kill_reason?: string } | null;
    }[];
    expect(events.find(({ type }) => type === 'sandbox.lifecycle.killed')?.eventData?.kill_reason).toBe('request');
    const again = await Sandbox.connect(paused.sandboxId, clientOf(platform));
    expect(await again.files.read('/home/user/note')).toBe('kept');
    await again.pause();

    // Without its database it goes down all the same, and loses nothing that is kept.
    await platform.stop();
    const database = join(platform.ready.dataDir, 'api/atoll.sqlite');
    renameSync(database, `${database}.away`);
    const blind = await atoll(platform.env, 'down');
    expect(blind).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('The database could not be reached') });
    renameSync(`${database}.away`, database);
    await platform.restart();
    expect(await idsOf(platform)).toEqual([paused.sandboxId]);

    expect((await atoll(platform.env, 'down', '--all')).exitCode).toBe(0);
    await platform.restart();
    expect(await idsOf(platform)).toEqual([]);
    expect(platform.log()).not.toContain('gone from its node');
  },
  timeoutMs,
);
