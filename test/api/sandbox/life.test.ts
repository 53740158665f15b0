import { expect, test } from 'bun:test';
import { onEachDatabase } from '../databases.ts';
import { Platform, until } from '../platform.ts';
import { followClosed } from '../follow-closed.ts';

onEachDatabase(database => {
  test('a sandbox is created, read, listed and deleted', async () => {
    await using platform = await Platform.start({ database });
    const created = await platform.call('POST', '/v2/sandboxes', { templateID: 'base', metadata: { a: 'b' } });
    expect(created.status).toBe(201);
    const sandbox = created.body as Record<string, string>;
    expect(sandbox).toMatchObject({ alias: 'base', clientID: '6532622b', envdVersion: '0.6.13', domain: null });
    expect(sandbox['sandboxID']).toMatch(/^[a-z0-9]+$/);
    expect(sandbox['envdAccessToken']).toMatch(/^[0-9a-f]{64}$/);
    expect(platform.node.executions().map(({ sandboxId }) => sandboxId)).toEqual([sandbox['sandboxID'] ?? '']);

    const read = await platform.call('GET', `/sandboxes/${sandbox['sandboxID']}`);
    expect(read.status).toBe(200);
    expect(read.body).toMatchObject({
      state: 'running',
      metadata: { a: 'b' },
      cpuCount: 2,
      memoryMB: 1024,
      volumeMounts: [],
      lifecycle: { autoResume: false, onTimeout: 'kill' },
    });
    const { startedAt, endAt } = read.body as { startedAt: string; endAt: string };
    expect(Date.parse(endAt) - Date.parse(startedAt)).toBe(300_000);

    const listed = await platform.call('GET', '/v2/sandboxes');
    expect(listed.body).toHaveLength(1);
    expect(listed.headers.get('x-total-running')).toBe('1');

    expect((await platform.call('DELETE', `/sandboxes/${sandbox['sandboxID']}`)).status).toBe(204);
    expect(platform.node.executions()).toEqual([]);
    for (const again of [
      await platform.call('DELETE', `/sandboxes/${sandbox['sandboxID']}`),
      await platform.call('GET', `/sandboxes/${sandbox['sandboxID']}`),
    ]) {
      expect(again).toMatchObject({ status: 404, body: { code: 404 } });
    }
    expect(platform.api.directory.size).toBe(0);
  });

  test('a sandbox ends when its time is over', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox({ timeout: 1 });
    using followed = followClosed(platform.api.directory);
    const closed = () => followed.closed.map(({ sandboxId }) => sandboxId);
    await until(async () => (await platform.call('GET', `/sandboxes/${sandboxID}`)).status === 404);
    await until(() => platform.node.executions().length === 0);
    expect(closed()).toEqual([sandboxID]);
  });
});
