import { expect, test } from 'bun:test';
import { sampleNodes } from '../../src/api/metrics/reconcilers/nodes.ts';
import { stuckSeconds } from '../../src/api/operator/rules/stuck.ts';
import { onEachDatabase } from './databases.ts';
import { adminToken, Platform } from './platform.ts';

const operator = { 'x-admin-token': adminToken };

onEachDatabase(database => {
  test('a sandbox that stays between two states is listed as stuck, and no other', async () => {
    await using platform = await Platform.start({ database });
    const [{ sandboxID }] = [await platform.createSandbox(), await platform.createSandbox()];
    const { db } = platform.store;
    const stuck = () => platform.call('GET', '/admin/sandboxes/stuck', undefined, operator);
    expect(await stuck()).toMatchObject({ status: 200, body: [] });
    const mine = db.selectFrom('sandboxes').selectAll().where('sandbox_id', '=', sandboxID);
    const row = await mine.executeTakeFirstOrThrow();
    const sinceUs = platform.api.parts.clock() - (stuckSeconds + 5) * 1_000_000;
    const { team_id: teamId, node_id: nodeId, execution_id: executionId } = row;
    platform.api.parts.changes.look([{ sandboxId: sandboxID, executionId, teamId, nodeId, state: 'pausing' }], sinceUs);
    await db
      .updateTable('sandboxes')
      .set({ state: 'pausing', replica_id: platform.api.parts.replica.replicaId })
      .where('sandbox_id', '=', sandboxID)
      .execute();
    expect((await stuck()).body).toMatchObject([{ sandboxID, teamID: teamId, nodeID: nodeId, state: 'pausing' }]);
    const transitionOf = async () => (await platform.call('GET', `/sandboxes/${sandboxID}`)).body;
    expect(await transitionOf()).toMatchObject({ state: 'paused', transition: 'pausing' });
    await db.updateTable('sandboxes').set({ state: 'running', replica_id: null }).execute();
    expect((await stuck()).body).toEqual([]);
    expect(await transitionOf()).not.toHaveProperty('transition');
  });
});

test('the operator is told what the machine can do, and by which settings the platform runs', async () => {
  await using platform = await Platform.start();
  expect(await platform.call('GET', '/admin/doctor', undefined, operator)).toMatchObject({
    status: 200,
    body: { findings: [{ name: 'a sandbox', status: 'ok' }] },
  });
  expect(await platform.call('GET', '/admin/settings', undefined, operator)).toMatchObject({
    status: 200,
    body: { settings: [] },
  });
});

test('the operator is told how long creates take, how reconcilers do, and what nodes use', async () => {
  await using platform = await Platform.start();
  const overview = () => platform.call('GET', '/admin/overview', undefined, operator);
  expect((await overview()).body).toMatchObject({ creates: { succeeded: 0, failed: 0, p50Seconds: null } });
  await platform.createSandbox();
  const { nodeHistory, nodes, clock } = platform.api.parts;
  await sampleNodes({ nodeHistory, nodes, clock });
  const { body } = await overview();
  expect(body).toMatchObject({ creates: { succeeded: 1, failed: 0, causes: [] } });
  const { creates, reconcilers } = body as { creates: { p99Seconds: number }; reconcilers: { name: string }[] };
  expect(creates.p99Seconds).toBeGreaterThan(0);
  expect(reconcilers.map(({ name }) => name)).toContain('expiry');
  const [node] = nodes.list();
  const metrics = await platform.call('GET', `/nodes/${node?.nodeId}/metrics`, undefined, operator);
  const [sample] = metrics.body as { memoryTotalBytes: number; timestampUnix: number }[];
  expect(sample?.memoryTotalBytes).toBeGreaterThan(0);
  const later = `start=${(sample?.timestampUnix ?? 0) + 3_600}`;
  expect((await platform.call('GET', `/nodes/${node?.nodeId}/metrics?${later}`, undefined, operator)).body).toEqual([]);
  expect((await platform.call('GET', '/nodes/unknown/metrics', undefined, operator)).status).toBe(404);
});
