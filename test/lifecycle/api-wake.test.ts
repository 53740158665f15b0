import { expect, test } from 'bun:test';
import { onEachDatabase } from '../api/databases.ts';
import { Platform, until } from '../api/platform.ts';

async function paused(platform: Platform, options: Record<string, unknown>, body?: unknown): Promise<string> {
  const { sandboxID } = await platform.createSandbox(options);
  expect((await platform.call('POST', `/sandboxes/${sandboxID}/pause`, body)).status).toBe(204);
  return sandboxID;
}
const autoResume = { autoResume: { enabled: true } };
const lifetimeOf = async (platform: Platform, id: string) => {
  const { startedAt, endAt } = (await platform.call('GET', `/sandboxes/${id}`)).body as {
    startedAt: string;
    endAt: string;
  };
  // Later callers have extended it by as much as they came later.
  return Math.floor((Date.parse(endAt) - Date.parse(startedAt)) / 1000);
};

onEachDatabase(database => {
  test('traffic wakes a paused sandbox with the policy, once for all who come, for the time it was created with', async () => {
    await using platform = await Platform.start({ database, limits: { lifetimeHours: 1 } });
    const ids = [];
    for (const timeout of [60, 900, 3600]) ids.push(await paused(platform, { ...autoResume, timeout }));
    for (const id of ids) {
      const routes = await Promise.all(Array.from({ length: 10 }, () => platform.api.forEdge.wake(id)));
      for (const route of routes) expect(route).toMatchObject({ sandboxId: id, state: 'running' });
      expect(routes[0]).toEqual(platform.api.directory.find(id) as never);
    }
    expect(platform.node.resumed.map(({ sandboxId }) => sandboxId)).toEqual(ids);
    expect(await Promise.all(ids.map(id => lifetimeOf(platform, id)))).toEqual([300, 900, 3600]);
  });

  test('without the policy, and without memory, traffic wakes nothing; the edge is told so', async () => {
    await using platform = await Platform.start({ database });
    const cold = await paused(platform, autoResume, { memory: false });
    const plain = await paused(platform, {});
    for (const id of [cold, plain, 'iunknown']) {
      await expect(platform.api.forEdge.wake(id)).rejects.toMatchObject({ code: 'not_found' });
      expect(platform.api.directory.find(id)?.ingress.autoResume ?? false).toBe(false);
    }
    expect(platform.node.resumed).toEqual([]);
  });

  test('a sandbox that is still being paused is woken when it is', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox(autoResume);
    const going = Promise.withResolvers<void>();
    platform.node.before = () => going.promise;
    const pausing = platform.call('POST', `/sandboxes/${id}/pause`);
    await until(() => platform.api.directory.find(id)?.state === 'pausing');
    const waking = platform.api.forEdge.wake(id);
    going.resolve();
    expect(await waking).toMatchObject({ state: 'running' });
    expect((await pausing).status).toBe(204);
  });

  test('what keeps a sandbox from being woken is told: the limit, the block, the kill', async () => {
    await using platform = await Platform.start({ database, limits: { concurrentSandboxes: 1 } });
    const id = await paused(platform, autoResume);
    const { sandboxID: other } = await platform.createSandbox();
    await expect(platform.api.forEdge.wake(id)).rejects.toMatchObject({ code: 'rate_limited' });
    await platform.call('DELETE', `/sandboxes/${other}`);
    await platform.store.db.updateTable('teams').set({ blocked: 1 }).execute();
    await expect(platform.api.forEdge.wake(id)).rejects.toMatchObject({ code: 'forbidden' });
    await platform.store.db.updateTable('teams').set({ blocked: 0 }).execute();
    await platform.call('DELETE', `/sandboxes/${id}`);
    await expect(platform.api.forEdge.wake(id)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('paused sandboxes are woken after a restart of the platform', async () => {
    await using platform = await Platform.start({ database });
    const id = await paused(platform, autoResume);
    await platform.restart();
    expect(platform.api.directory.find(id)).toMatchObject({ state: 'paused' });
    expect(await platform.api.forEdge.wake(id)).toMatchObject({ state: 'running' });
  });
});
