import { expect, test } from 'bun:test';
import { pruneEvents } from '../../../src/api/event/store/list.ts';
import { inTransaction } from '../../../src/api/database/db.ts';
import { recordVolumeEvent } from '../../../src/api/event/store/write.ts';
import { newUuid } from '../../../src/base/id.ts';
import { onEachDatabase } from '../databases.ts';
import { endlessBuilder } from '../fake-builder.ts';
import { Platform, until } from '../platform.ts';

type Event = {
  id: string;
  type: string;
  timestamp: string;
  eventData: Record<string, unknown> | null;
  sandboxId?: string;
  sandbox_id?: string;
  sandboxExecutionId?: string;
  subject: { kind: string; id: string };
};

onEachDatabase(database => {
  const events = async (platform: Platform, path = '/events', headers = {}) => {
    const answer = await platform.call('GET', path, undefined, headers);
    expect(answer.status).toBe(200);
    return answer.body as Event[];
  };
  const changes = (list: Event[]) => list.map(({ type }) => type.split('.').at(-1));

  test('the whole life of a sandbox is told, in its order, and to its team alone', async () => {
    await using platform = await Platform.start({ database });
    const other = await platform.otherTeam();
    const { sandboxID } = await platform.createSandbox({
      metadata: { owner: 'Zoë ☃ 🏝' },
      envVars: { TOKEN: 'never-in-an-event' },
    });
    await platform.call('POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 900 });
    await platform.call('PUT', `/sandboxes/${sandboxID}/network`, { denyOut: ['0.0.0.0/0'] });
    await platform.call('POST', `/sandboxes/${sandboxID}/snapshots`, { name: 'shot' });
    const forks = (await platform.call('POST', `/sandboxes/${sandboxID}/fork`, { count: 1 })).body as Array<{
      sandbox: { sandboxID: string };
    }>;
    const fork = forks[0]?.sandbox.sandboxID ?? '';
    await platform.call('POST', `/sandboxes/${sandboxID}/pause`);
    await platform.call('POST', `/v2/sandboxes/${sandboxID}/connect`, { timeout: 60 });
    await platform.call('POST', `/v2/sandboxes/${sandboxID}/connect`, { timeout: 1 });
    await platform.call('DELETE', `/sandboxes/${sandboxID}`);
    await platform.call('DELETE', `/sandboxes/${sandboxID}`);

    const told = await events(platform, `/events/sandboxes/${sandboxID}?orderAsc=true`);
    expect(changes(told)).toEqual([
      'created',
      'updated',
      'updated',
      'checkpointed',
      'forked',
      'paused',
      'resumed',
      'killed',
    ]);
    const execution = {
      started_at: expect.any(String),
      vcpu_count: 2,
      memory_mb: 1024,
      execution_time: expect.any(Number),
    };
    expect(told.map(event => event.eventData)).toMatchObject([
      { sandbox_metadata: { owner: 'Zoë ☃ 🏝' } },
      { set_timeout: expect.stringMatching(/Z$/) },
      { set_network: true },
      { snapshot_id: expect.any(String) },
      { fork_id: fork },
      { execution },
      {},
      { execution, kill_reason: 'request' },
    ]);
    for (const event of told)
      expect(event).toMatchObject({
        version: 'v2',
        sandboxId: sandboxID,
        sandbox_id: sandboxID,
        sandboxTeamId: platform.team.teamId,
      });
    expect(new Set(told.map(({ id }) => id)).size).toBe(told.length);
    expect(new Set(told.map(({ sandboxExecutionId }) => sandboxExecutionId)).size).toBe(2);
    expect((await events(platform, `/events/sandboxes/${fork}`))[0]).toMatchObject({
      type: 'sandbox.lifecycle.created',
      eventData: { forked_from: sandboxID },
    });
    expect(JSON.stringify(told)).not.toContain('never-in-an-event');

    expect(await events(platform, `/events/sandboxes/${sandboxID}`, { 'x-api-key': other.key })).toEqual([]);
    expect(await events(platform, '/events', { 'x-api-key': other.key })).toEqual([]);
    expect(
      changes(
        await events(
          platform,
          '/events/sandboxes?limit=2&offset=1&types=sandbox.lifecycle.updated,sandbox.lifecycle.paused',
        ),
      ),
    ).toEqual(['updated', 'updated']);
    expect((await platform.call('GET', '/events?types=nonsense')).status).toBe(400);
  });

  test('each end of a sandbox says its reason, once, and a start that failed says nothing', async () => {
    await using platform = await Platform.start({ database });
    const reasons = async (id: string) =>
      (await events(platform, `/events/sandboxes/${id}?types=sandbox.lifecycle.killed`)).map(
        event => event.eventData?.['kill_reason'],
      );
    const onNode = (id: string) =>
      platform.node.executions().find(({ sandboxId }) => sandboxId === id) ?? { sandboxId: id, executionId: '' };
    const [timedOut, exited, lost] = [
      await platform.createSandbox(),
      await platform.createSandbox(),
      await platform.createSandbox(),
    ];
    await platform.call('POST', `/sandboxes/${timedOut.sandboxID}/timeout`, { timeout: 0 });
    platform.node.exit(onNode(exited.sandboxID), 'out_of_memory');
    await until(
      async () => (await reasons(timedOut.sandboxID)).length > 0 && (await reasons(exited.sandboxID)).length > 0,
    );
    expect(await reasons(timedOut.sandboxID)).toEqual(['timeout']);
    expect(await reasons(exited.sandboxID)).toEqual(['out_of_memory']);
    await platform.node.kill(onNode(lost.sandboxID));
    await platform.restart();
    await until(async () => (await reasons(lost.sandboxID)).length > 0);
    expect(await reasons(lost.sandboxID)).toEqual(['lost']);

    const before = (await events(platform, '/events?limit=100')).length;
    platform.node.before = async call => {
      if (call === 'create') throw new Error('no');
    };
    expect((await platform.call('POST', '/v2/sandboxes', { templateID: 'base' })).status).toBe(500);
    expect(await events(platform, '/events?limit=100')).toHaveLength(before);
  });

  test('a disk that has failed is told of while the sandbox runs, and of no execution that is over', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    const target = platform.node.executions()[0]!;
    platform.node.failDisk({ sandboxId: sandboxID, executionId: crypto.randomUUID() });
    platform.node.failDisk(target);
    const types = async () => (await events(platform, `/events/sandboxes/${sandboxID}`)).map(({ type }) => type);
    await until(async () => (await types()).includes('sandbox.lifecycle.disk_failed'));
    expect((await types()).filter(type => type === 'sandbox.lifecycle.disk_failed')).toHaveLength(1);
    expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).body).toMatchObject({ state: 'running' });
  });

  test('builds and volumes are told of too', async () => {
    await using platform = await Platform.start({ database, builder: endlessBuilder() });
    const { templateID, buildID } = (await platform.call('POST', '/v3/templates', { name: 'built' })).body as {
      templateID: string;
      buildID: string;
    };
    await platform.call('POST', `/v2/templates/${templateID}/builds/${buildID}`, { fromImage: 'debian:12' });
    await platform.call('DELETE', `/templates/${templateID}`);
    const told = await events(platform, `/events?kind=build&subjectID=${buildID}&orderAsc=true`);
    expect(changes(told)).toEqual(['created', 'started', 'failed']);
    const volume = { teamId: platform.team.teamId, volumeId: newUuid(), name: 'data' };
    await inTransaction(platform.store.db, db => recordVolumeEvent(db, volume, { type: 'created', atUs: 1 }));
    expect(await events(platform, '/events?kind=volume')).toMatchObject([
      {
        type: 'volume.lifecycle.created',
        subject: { kind: 'volume', id: volume.volumeId },
        eventData: { name: 'data' },
      },
    ]);
  });

  test('an event that would be too long goes without the metadata; old events and too many are forgotten', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox({ metadata: { long: 'x'.repeat(100_000) } });
    const [created] = await events(platform, `/events/sandboxes/${sandboxID}`);
    expect(created?.eventData).toEqual({ sandbox_metadata_omitted: true });
    for (let i = 0; i < 5; i++) await platform.call('POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 100 + i });
    await pruneEvents(platform.store.db, 0, 4);
    expect(changes(await events(platform))).toEqual(['updated', 'updated', 'updated', 'updated']);
    await pruneEvents(platform.store.db, platform.api.parts.clock());
    expect(await events(platform)).toEqual([]);
  });
});
