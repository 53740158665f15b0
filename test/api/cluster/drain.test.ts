import { expect, test } from 'bun:test';
import { onEachDatabase } from '../databases.ts';
import { Platform, adminToken, call, until } from '../platform.ts';

// Draining a machine: what is listed, what is paused, what is refused.

type Drain = { mode: string; sandboxes: { sandboxID: string; reason?: string }[] };

onEachDatabase(database => {
  test('a machine is emptied by pauses, and its sandboxes stay paused until that is over', async () => {
    await using platform = await Platform.start({ database });
    const admin = (method: string, path: string, body?: unknown) =>
      call(platform.socketPath, method, path, body, { 'x-admin-token': adminToken });
    const drain = async () => (await admin('GET', '/admin/nodes/node-1/drain')).body as Drain;
    const { sandboxID } = await platform.createSandbox();
    expect(await drain()).toMatchObject({ mode: 'none', sandboxes: [{ sandboxID }] });

    expect(await admin('POST', '/admin/nodes/node-1/drain', { mode: 'pause' })).toMatchObject({ status: 200 });
    await until(async () => (await drain()).sandboxes.length === 0);
    // It runs nothing, and yet must not be thrown away.
    expect(await drain()).toMatchObject({ mode: 'pause', kept: { sandboxes: 1, volumes: 0 } });
    expect((await admin('GET', '/nodes/node-1')).body).toMatchObject({ status: 'draining', sandboxCount: 0 });
    expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).body).toMatchObject({
      state: 'paused',
      pauseMode: 'full',
    });
    expect(await platform.call('POST', '/v2/sandboxes', { templateID: 'base' })).toMatchObject({ status: 503 });
    const connect = () => platform.call('POST', `/sandboxes/${sandboxID}/connect`, { timeout: 60 });
    expect(await connect()).toMatchObject({ status: 503, body: { error_code: 'sandbox_no_compatible_node' } });

    expect((await admin('POST', '/nodes/node-1', { status: 'ready' })).status).toBe(204);
    expect((await connect()).status).toBeLessThan(300);
    expect(await drain()).toMatchObject({ mode: 'none', sandboxes: [{ sandboxID }] });
  });

  test('a machine is not empty while a sandbox of it is being killed', async () => {
    await using platform = await Platform.start({ database });
    const admin = (method: string, path: string, body?: unknown) =>
      call(platform.socketPath, method, path, body, { 'x-admin-token': adminToken });
    const { sandboxID } = await platform.createSandbox();
    const [asked, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    platform.node.before = async name => {
      if (name !== 'kill') return;
      asked.resolve();
      await goOn.promise;
    };
    const killed = platform.call('DELETE', `/sandboxes/${sandboxID}`);
    await asked.promise;
    const begun = await admin('POST', '/admin/nodes/node-1/drain', { mode: 'pause' });
    expect(begun).toMatchObject({ status: 200, body: { sandboxes: [{ sandboxID }] } });
    expect(JSON.stringify(begun.body)).not.toContain('reason');
    goOn.resolve();
    expect(await killed).toMatchObject({ status: 204 });
    expect((await admin('GET', '/admin/nodes/node-1/drain')).body).toMatchObject({ sandboxes: [] });
  });

  test('a sandbox that can not be paused is listed with the reason and runs on', async () => {
    await using platform = await Platform.start({ database });
    const admin = (method: string, path: string, body?: unknown) =>
      call(platform.socketPath, method, path, body, { 'x-admin-token': adminToken });
    platform.node.memory = { kept: false, reason: 'no CRIU' };
    const { sandboxID } = await platform.createSandbox();
    const stuck = { sandboxes: [{ sandboxID, reason: expect.stringContaining('no CRIU') }] };
    expect((await admin('GET', '/admin/nodes/node-1/drain')).body).toMatchObject(stuck);
    const begun = await admin('POST', '/admin/nodes/node-1/drain', { mode: 'pause' });
    expect(begun).toMatchObject({ status: 200, body: { mode: 'pause', ...stuck } });
    expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).body).toMatchObject({ state: 'running' });
    // It is paused as soon as it can be.
    platform.node.memory = { kept: true };
    await until(async () => {
      const { body } = await platform.call('GET', `/sandboxes/${sandboxID}`);
      return (body as { state: string }).state === 'paused';
    });
  });

  test('a drain that waits leaves what runs alone, and one that moves is refused where there is no store', async () => {
    await using platform = await Platform.start({ database });
    const admin = (method: string, path: string, body?: unknown) =>
      call(platform.socketPath, method, path, body, { 'x-admin-token': adminToken });
    const { sandboxID } = await platform.createSandbox();
    const move = await admin('POST', '/admin/nodes/node-1/drain', { mode: 'move' });
    expect(move).toMatchObject({ status: 400, body: { message: expect.stringContaining('ATOLL_STORE') } });
    expect((await admin('GET', '/admin/nodes/node-1/drain?mode=move')).body).toMatchObject({
      mode: 'none',
      sandboxes: [{ sandboxID, reason: expect.stringContaining('ATOLL_STORE') }],
    });
    const asIfWaiting = (await admin('GET', '/admin/nodes/node-1/drain?mode=wait')).body;
    expect(asIfWaiting).toMatchObject({ sandboxes: [{ sandboxID }] });
    expect(JSON.stringify(asIfWaiting)).not.toContain('reason');
    expect((await admin('GET', '/admin/nodes/node-1/drain?mode=now')).status).toBe(400);
    expect((await admin('GET', '/nodes/node-1')).body).toMatchObject({ status: 'ready' });
    const begun = await admin('POST', '/admin/nodes/node-1/drain', { mode: 'wait' });
    expect(begun).toMatchObject({ status: 200, body: { mode: 'wait', sandboxes: [{ sandboxID }] } });
    expect((await admin('GET', '/nodes/node-1')).body).toMatchObject({ status: 'draining' });
    await platform.call('DELETE', `/sandboxes/${sandboxID}`);
    expect((await admin('GET', '/admin/nodes/node-1/drain')).body).toMatchObject({ mode: 'wait', sandboxes: [] });
    expect((await admin('GET', '/admin/nodes/other/drain')).status).toBe(404);
    expect((await admin('POST', '/admin/nodes/other/drain', { mode: 'wait' })).status).toBe(404);
    expect((await admin('POST', '/admin/nodes/node-1/drain', { mode: 'now' })).status).toBe(400);
  });
});
