import { expect, test } from 'bun:test';
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
    await db.updateTable('sandboxes').set({ state: 'running', replica_id: null }).execute();
    expect((await stuck()).body).toEqual([]);
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
