import { expect, test } from 'bun:test';
import { join } from 'node:path';
import type { DurablePauses } from '../../../src/api/blob/rules/pauses.ts';
import { putClusterNode } from '../../../src/api/cluster/store/nodes.ts';
import type { Nodes } from '../../../src/api/placement/nodes.ts';
import type { SandboxRecord } from '../../../src/api/sandbox/record.ts';
import { findSandboxOfAnyTeam } from '../../../src/api/sandbox/store/read.ts';
import { settleMove } from '../../../src/api/sandbox/workflows/move/settle.ts';
import { moveSandboxWorkflow } from '../../../src/api/sandbox/workflows/move/steps.ts';
import { newUuid } from '../../../src/base/id.ts';
import type { NodeProtocol } from '../../../src/protocol/node.ts';
import { onEachDatabase } from '../databases.ts';
import { FakeNode } from '../fake-node.ts';
import { Platform } from '../platform.ts';

// A move to a second machine: what holds if it fails, or if another process completes it.

const features = { egressAddresses: true, egressDomains: true, headerRules: true };

onEachDatabase(database => {
  /** A platform with one sandbox that can be moved to a second machine. */
  async function scene() {
    const platform = await Platform.start({ database, features });
    await platform.call('POST', '/secrets', { name: 'k', value: 'at-first' });
    const { sandboxID } = await platform.createSandbox({
      network: { rules: { 'api.example.com': [{ transform: { headers: { Authorization: '${e2b.secrets.k}' } } }] } },
    });
    const { db } = platform.store;
    const second = new FakeNode(join(platform.directory, 'second'));
    const row = { nodeId: 'node-2', address: '203.0.113.2:3010', certificates: [], renewAtUs: 0, joinedAtUs: 0 };
    await putClusterNode(db, row, null);
    const info = JSON.stringify({ ...(await second.info()), nodeId: 'node-2' });
    await db.updateTable('cluster_nodes').set({ info_json: info }).execute();
    const machines = new Map([
      ['node-1', platform.node],
      ['node-2', second],
    ]);
    const nodes: Nodes = {
      list: () => [...machines].map(([nodeId, node]) => ({ nodeId, protocol: node as NodeProtocol })),
      get: nodeId => (machines.get(nodeId) ?? platform.node) as NodeProtocol,
    };
    const found = async () => {
      const sandbox = await findSandboxOfAnyTeam(db, sandboxID);
      if (!sandbox) throw new Error('the sandbox is gone');
      return sandbox;
    };
    return { platform, db, second, deps: { ...platform.api.parts, nodes }, found };
  }

  /** As if a paused sandbox had been carried there. */
  async function carried(platform: Platform, second: FakeNode, { sandboxId, executionId }: SandboxRecord) {
    await second.create({ ...platform.node.created[0]!, sandboxId, executionId });
    await second.pause({ sandboxId, executionId }, { memory: true });
  }

  test('a move that another process brings to its end leaves nothing where the sandbox was', async () => {
    const { platform, db, second, deps, found } = await scene();
    await using _ = platform;
    const sandbox = await found();
    const nextExecutionId = newUuid();
    await platform.node.pause(sandbox, { memory: true });
    await second.create({ ...platform.node.created[0]!, sandboxId: sandbox.sandboxId, executionId: nextExecutionId });
    const moving = { state: 'moving', next_node_id: 'node-2', next_execution_id: nextExecutionId } as const;
    await db
      .updateTable('sandboxes')
      .set({ ...moving, replica_id: deps.busy.replicaId })
      .execute();
    await settleMove(deps, sandbox);
    expect(await found()).toMatchObject({ nodeId: 'node-2', executionId: nextExecutionId, state: 'running' });
    expect(platform.node.paused()).toEqual([]);
    expect(second.executions()).toHaveLength(1);
  });

  test('a sandbox that was moved runs there, also where its secrets can not be told to it', async () => {
    const { platform, second, deps, found } = await scene();
    await using _ = platform;
    const sandbox = await found();
    const durable = {
      prepare: async () => {},
      draft: async () => 0,
      dropDraft: async () => {},
      carry: async (moving: SandboxRecord) => carried(platform, second, moving),
    } as unknown as DurablePauses;
    second.after = async call => {
      if (call === 'resume') await platform.call('POST', '/secrets/k', { value: 'while-moving' });
    };
    second.before = async call => {
      if (call === 'updateNetwork') throw new Error('the machine fails');
    };
    await moveSandboxWorkflow(deps, sandbox, { nextNodeId: 'node-2', durable });
    const moved = await found();
    expect(moved).toMatchObject({ nodeId: 'node-2', state: 'running', replicaId: null });
    expect(second.executions().map(({ executionId }) => executionId)).toEqual([moved.executionId]);
    expect([...platform.node.executions(), ...platform.node.paused()]).toEqual([]);
    expect(platform.logged.join('')).toContain('may hold a secret as it was');
  });
});
