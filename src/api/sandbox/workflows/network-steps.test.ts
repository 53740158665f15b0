import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { newSandboxId } from '../../../base/id.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import type { ExecutionRef, NodeProtocol, SandboxNetwork } from '../../../protocol/node.ts';
import { openStore } from '../../database/database.ts';
import { createIdentity } from '../../identity/rules/identity.ts';
import { createMeasures } from '../../metrics/measures.ts';
import { singleNode } from '../../placement/nodes.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { defaultOptions, type SandboxRecord } from '../record.ts';
import { insertSandbox } from '../store/create.ts';
import { findSandboxOfAnyTeam } from '../store/read.ts';
import { applyNetwork, tellNetwork, updateNetworkWorkflow } from './network-steps.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const clock = () => 1e15;
const { teamId } = await createTeam({ db, clock }, { name: 'T', slug: 't' });
const seed = new Uint8Array(32).fill(1);
const identity = createIdentity({ seed, issuer: 'https://api.example.org', domain: 'example.org', clock });

/** A running sandbox that may reach everything; `onTold` is what its node does when it is told a policy. */
async function scene(change: Partial<SandboxRecord> = {}, onTold: (times: number) => Promise<void> = async () => {}) {
  const sandboxId = newSandboxId();
  const told: [string, SandboxNetwork][] = [];
  const logged: string[] = [];
  const node = {
    async updateNetwork({ executionId }: ExecutionRef, network: SandboxNetwork) {
      told.push([executionId.slice(-1), network]);
      await onTold(told.length);
    },
  } as unknown as NodeProtocol;
  const deps = {
    ...{ clock, db, seed, identity, nodes: singleNode('n', node), measures: createMeasures() },
    log: createLog('error', line => logged.push(line)),
  };
  const sandbox: SandboxRecord = {
    ...{ ...defaultOptions, sandboxId, executionId: `${sandboxId}/1`, teamId, nodeId: 'n', state: 'running' },
    ...{ templateId: 't', buildId: 'b', alias: null, agentVersion: '1', cpuCount: 1, memoryMiB: 1, diskMiB: 1 },
    ...{ createdAtUs: 1, startedAtUs: 1, endAtUs: 1, timeoutSeconds: 60, secure: true, kept: null, volumeMounts: [] },
    ...{ agentUnresponsive: false, durability: null, nextExecutionId: null, nextNodeId: null, replicaId: null },
    ...change,
  };
  expect(await insertSandbox(db, sandbox, { concurrentSandboxes: 99, sandboxes: 99 })).toBe('inserted');
  const set = async (changed: object) =>
    void (await db.updateTable('sandboxes').set(changed).where('sandbox_id', '=', sandboxId).execute());
  const allowed = async () => (await findSandboxOfAnyTeam(db, sandboxId))?.allowInternetAccess;
  const update = (allowInternetAccess: boolean | null) =>
    updateNetworkWorkflow({ deps, sandbox, settings: { allowInternetAccess, network: null } });
  return { deps, sandbox, node, told, logged, set, allowed, update };
}

/** The policy that a node is told for a sandbox with these settings. */
async function policyOf(allowInternetAccess: boolean | null): Promise<SandboxNetwork | undefined> {
  const { deps, sandbox, told } = await scene({ allowInternetAccess });
  await applyNetwork(deps, sandbox);
  return told[0]?.[1];
}
const [open, closed] = [await policyOf(null), await policyOf(false)];

test('a change takes effect in the database and on the node', async () => {
  expect(open).not.toEqual(closed);
  const { update, allowed, told } = await scene();
  await update(false);
  expect([await allowed(), told]).toEqual([false, [['1', closed as SandboxNetwork]]]);
});

test('a sandbox that does not run is not changed', async () => {
  const { update, allowed, told } = await scene({ state: 'paused', kept: 'memory' });
  await expect(update(false)).rejects.toMatchObject({ code: 'conflict' });
  expect([await allowed(), told]).toEqual([null, []]);
});

test('a change that the node rejected is undone, on the node too', async () => {
  const { update, allowed, told } = await scene({}, async times => {
    if (times === 1) throw new AtollError('unavailable', 'its answer was lost');
  });
  await expect(update(false)).rejects.toThrow('its answer was lost');
  expect(await allowed()).toBeNull();
  expect(told).toEqual([
    ['1', closed as SandboxNetwork],
    ['1', open as SandboxNetwork],
  ]);
});

test('later settings of somebody else are not undone', async () => {
  const it = await scene({}, async times => {
    if (times > 1) return;
    await it.set({ allow_internet_access: 1 });
    throw new AtollError('unavailable', 'its answer was lost');
  });
  await expect(it.update(false)).rejects.toThrow('its answer was lost');
  expect(await it.allowed()).toBe(true);
});

test('a node is told the final settings, also during a snapshot', async () => {
  for (const state of ['running', 'snapshotting'] as const) {
    const it = await scene({ state }, async times => {
      if (times === 1) await it.set({ allow_internet_access: 0 });
    });
    await applyNetwork(it.deps, it.sandbox);
    expect(it.told).toEqual([
      ['1', open as SandboxNetwork],
      ['1', closed as SandboxNetwork],
    ]);
  }
});

test('endless changes are sent ten times, and none for a sandbox that does not run or is gone', async () => {
  const it = await scene({}, times => it.set({ allow_internet_access: (times + 1) % 2 }));
  await applyNetwork(it.deps, it.sandbox);
  expect(it.told).toHaveLength(10);
  const pausing = await scene({ state: 'pausing' });
  await applyNetwork(pausing.deps, pausing.sandbox);
  await applyNetwork(pausing.deps, { sandboxId: 'none', executionId: 'none' });
  expect(pausing.told).toEqual([]);
  const ending = await scene({}, async () => {
    await db.deleteFrom('sandboxes').where('sandbox_id', '=', ending.sandbox.sandboxId).execute();
  });
  await applyNetwork(ending.deps, ending.sandbox);
  expect(ending.told).toHaveLength(1);
});

test('a sandbox that runs on counts as running on a full disk, but not if its node fails otherwise', async () => {
  const error = { now: new AtollError('no_space', 'the disk is full') as Error };
  const { deps, node, sandbox, told, logged } = await scene({ state: 'resuming' }, () => Promise.reject(error.now));
  await tellNetwork(deps, node, sandbox);
  await tellNetwork(deps, node, sandbox, 'next/2');
  expect(told.map(([execution]) => execution)).toEqual(['1', '2']);
  expect(logged).toEqual([expect.stringContaining('the disk is full'), expect.stringContaining('the disk is full')]);
  for (error.now of [new AtollError('unavailable', 'it is away'), new Error('a bug')])
    await expect(tellNetwork(deps, node, sandbox)).rejects.toBe(error.now);
});
