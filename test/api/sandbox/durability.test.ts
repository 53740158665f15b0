import { expect, test } from 'bun:test';
import { onEachDatabase } from '../databases.ts';
import { adminToken, call, Platform } from '../platform.ts';

// What a pause survives if there is no store: the same as before, and whoever asks for more is told why not.

onEachDatabase(database => {
  test('without a store a pause is on its machine, and more is refused before anything is changed', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    const refused = await platform.call('POST', `/sandboxes/${sandboxID}/pause`, { durability: 'cluster' });
    expect(refused).toMatchObject({ status: 400, body: { message: expect.stringContaining('ATOLL_STORE') } });
    expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).body).toMatchObject({ state: 'running' });
    expect((await platform.call('POST', `/sandboxes/${sandboxID}/pause`, { durability: 'moon' })).status).toBe(400);
    const paused = await platform.call('POST', `/sandboxes/${sandboxID}/pause`, { durability: 'node' });
    expect([paused.status, paused.headers.get('X-Pause-Durability')]).toEqual([204, 'node']);
    expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).body).toMatchObject({
      state: 'paused',
      durability: 'node',
    });
    // For a sandbox that is already paused, it is refused the same way.
    const again = await platform.call('POST', `/sandboxes/${sandboxID}/pause`, { durability: 'cluster' });
    expect(again).toMatchObject({ status: 400, body: { message: expect.stringContaining('ATOLL_STORE') } });
    expect((await platform.call('POST', `/sandboxes/${sandboxID}/pause`, {})).status).toBe(409);
  });

  test('a create that asks for more than there is is refused, and names the member', async () => {
    await using platform = await Platform.start({ database });
    const create = (body: object) => platform.call('POST', '/v2/sandboxes', { templateID: 'base', ...body });
    for (const body of [
      { autoPauseDurability: 'cluster' },
      { autoPause: true, autoPauseDurability: 'cluster' },
      { autoPause: true, autoPauseDurability: 'moon' },
    ])
      expect(await create(body)).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining('autoPauseDurability') },
      });
    expect((await create({ autoPause: true, autoPauseDurability: 'node' })).status).toBe(201);
  });

  test("a team's default is what the operator says, and holds where it can be had", async () => {
    await using platform = await Platform.start({ database });
    const path = `/admin/teams/${platform.team.teamId}`;
    const change = (body: object) => call(platform.socketPath, 'PATCH', path, body, { 'x-admin-token': adminToken });
    expect((await change({ pauseDurability: 'moon' })).status).toBe(400);
    expect(await change({ pauseDurability: 'cluster' })).toMatchObject({
      status: 200,
      body: { pauseDurability: 'cluster', banned: false },
    });
    expect(await change({ name: 'Other' })).toMatchObject({ body: { pauseDurability: 'cluster' } });
    // There is no store: creates and pauses go on.
    const { sandboxID } = await platform.createSandbox({ autoPause: true });
    const paused = await platform.call('POST', `/sandboxes/${sandboxID}/pause`, {});
    expect([paused.status, paused.headers.get('X-Pause-Durability')]).toEqual([204, 'node']);
  });
});
