import { afterAll, expect, test } from 'bun:test';
import { newUuid } from '../../../base/id.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import type { ExecutionRef, NodeProtocol, PausedSandbox } from '../../../protocol/node.ts';
import { putClusterNode } from '../../cluster/store/nodes.ts';
import { openStore } from '../../database/database.ts';
import { createIdentity } from '../../identity/rules/identity.ts';
import type { Nodes } from '../../placement/nodes.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { SandboxDirectory } from '../directory/directory.ts';
import { defaultOptions, type SandboxRecord } from '../record.ts';
import { insertSandbox } from '../store/create.ts';
import { findSandboxOfAnyTeam } from '../store/read.ts';
import { findBegun, settleSandbox } from './settle.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const nowUs = 1e15;
const clock = () => nowUs;
const { teamId } = await createTeam({ db, clock }, { name: 'T', slug: 't' });
const seed = new Uint8Array(32).fill(1);
const identity = createIdentity({ seed, issuer: 'https://api.example.org', domain: 'example.org', clock });

/** A machine's executions of one sandbox, running or paused, and whether it has set the sandbox aside. */
type There = { running: string[]; paused: string[]; isSetAside?: boolean };
const nothing: There = { running: [], paused: [] };
const old = 'the old one';
const next = 'the next one';

/** A sandbox in transition as `change` says, and its machine. */
async function scene(change: Partial<SandboxRecord>, there: Partial<There>, isCluster = false) {
  const [sandboxId, nodeId] = [newUuid(), newUuid()];
  const named = (execution: string) => `${execution} of ${sandboxId}`;
  const told: string[] = [];
  const logged: string[] = [];
  const has = { ...nothing, ...there };
  const refs = (executions: string[]) => executions.map(execution => ({ sandboxId, executionId: named(execution) }));
  const node = {
    list: async () => refs(has.running),
    listPaused: async () =>
      refs(has.paused).map((ref): PausedSandbox => ({ ...ref, kept: 'filesystem', pausedAtMs: 1 })),
    listSetAside: async () => (has.isSetAside ? [{ sandboxId }] : []),
    async withdraw({ executionId }: ExecutionRef) {
      return !refs([...has.running, ...has.paused]).some(ref => ref.executionId === executionId);
    },
    kill: async ({ executionId }: ExecutionRef) => void told.push(`kill ${executionId.split(' of ')[0]}`),
    updateNetwork: async ({ executionId }: ExecutionRef) => void told.push(`rules of ${executionId.split(' of ')[0]}`),
  } as unknown as NodeProtocol;
  const nodes: Nodes = {
    list: () => [{ nodeId, protocol: node }],
    get: () => node,
    ...(isCluster && { away: () => [] }),
  };
  const directory = new SandboxDirectory(() => ({ accessToken: null, trafficToken: null }));
  const sandbox: SandboxRecord = {
    ...{ ...defaultOptions, sandboxId, executionId: named(old), teamId, nodeId, state: 'pausing', templateId: 't' },
    ...{ buildId: 'b', alias: null, agentVersion: '1', cpuCount: 1, memoryMiB: 1, diskMiB: 1, createdAtUs: 1 },
    ...{ startedAtUs: 1, endAtUs: 1, timeoutSeconds: 60, secure: true, volumeMounts: [], kept: null },
    ...{ agentUnresponsive: false, durability: null, nextExecutionId: null, nextNodeId: null, replicaId: 'here' },
    ...change,
    ...(change.nextExecutionId && { nextExecutionId: named(change.nextExecutionId) }),
  };
  expect(await insertSandbox(db, sandbox, { concurrentSandboxes: 999, sandboxes: 999 })).toBe('inserted');
  const deps = { clock, db, directory, nodes, seed, identity, log: createLog('error', line => logged.push(line)) };
  const row = async () => {
    const found = await findSandboxOfAnyTeam(db, sandboxId);
    return found && [found.state, found.executionId.split(' of ')[0]];
  };
  directory.apply(sandbox);
  return {
    ...{ sandbox, told, logged, row, directory, node, named, nodeId },
    settle: () => settleSandbox(deps, sandbox),
    found: () => findSandboxOfAnyTeam(db, sandboxId),
    /** Somebody else goes on with it. */
    goOn: (set: object) => db.updateTable('sandboxes').set(set).where('sandbox_id', '=', sandboxId).execute(),
  };
}

const resuming = { state: 'resuming', kept: 'memory', durability: 'node', nextExecutionId: next } as const;
const stored = { ...resuming, durability: 'cluster' } as const;

test('a sandbox that its node has paused is paused, with what that pause kept', async () => {
  for (const state of ['pausing', 'snapshotting'] as const) {
    const { settle, row, directory, sandbox, told } = await scene({ state, kept: 'memory' }, { paused: [old] });
    expect(await settle()).toMatchObject({ kept: 'filesystem', endAtUs: nowUs, replicaId: null });
    expect(await row()).toEqual(['paused', old]);
    expect([directory.find(sandbox.sandboxId)?.state, told]).toEqual(['paused', []]);
  }
});

test('a sandbox that runs on has the present rules, and a snapshotted one has them already', async () => {
  const paused = await scene({ state: 'pausing' }, { running: [old] });
  await paused.settle();
  expect(await paused.row()).toEqual(['running', old]);
  expect(paused.told).toEqual([`rules of ${old}`, `rules of ${old}`]);
  expect(paused.directory.find(paused.sandbox.sandboxId)?.state).toBe('running');
  const snapshotted = await scene({ state: 'snapshotting' }, { running: [old] });
  await snapshotted.settle();
  expect([await snapshotted.row(), snapshotted.told]).toEqual([['running', old], []]);
});

test('a sandbox that is gone from its node is forgotten, unless somebody else went on with it', async () => {
  for (const change of [{ state: 'pausing' }, resuming] as const) {
    const gone = await scene(change, {});
    expect(await gone.settle()).toBeNull();
    expect([await gone.row(), gone.directory.size]).toEqual([null, 0]);
    expect(gone.logged).toEqual([expect.stringContaining('a sandbox is gone from its node')]);
    const other = await scene(change, {});
    await other.goOn({ replica_id: 'another' });
    expect(await other.settle()).toBeNull();
    expect([(await other.row())?.[0], other.logged, other.directory.size]).toEqual([change.state, [], 1]);
  }
});

test('a sandbox that its node has set aside stays as it is, for an operator', async () => {
  for (const change of [{ state: 'pausing' }, resuming] as const) {
    const { settle, row, logged } = await scene(change, { isSetAside: true });
    expect(await settle()).toBeNull();
    expect([(await row())?.[0], logged]).toEqual([change.state, []]);
  }
});

test('a resume that has begun counts from now on, with the present rules', async () => {
  const { settle, row, told, directory, sandbox } = await scene(resuming, { running: [next] });
  expect(await settle()).toMatchObject({ startedAtUs: nowUs, endAtUs: nowUs + 60e6, kept: null });
  expect(await row()).toEqual(['running', next]);
  expect(told).toEqual([`rules of ${next}`, `rules of ${next}`]);
  expect(directory.find(sandbox.sandboxId)?.state).toBe('running');
});

test('a resumed sandbox that its node has paused since is paused as the next execution', async () => {
  const { settle, row, told } = await scene(resuming, { paused: [next] });
  expect(await settle()).toMatchObject({ kept: 'filesystem', endAtUs: nowUs });
  expect([await row(), told]).toEqual([['paused', next], []]);
});

test('a resume that has not begun returns to paused, if the pause is known to be there', async () => {
  const cases: [Partial<SandboxRecord>, Partial<There>][] = [
    [resuming, { paused: [old] }],
    // A machine that stood still has not heard of its pause yet.
    [resuming, { running: [old] }],
    [stored, {}],
  ];
  for (const [change, there] of cases) {
    const { settle, row, found, told, directory, sandbox } = await scene(change, there);
    await settle();
    expect([await row(), told]).toEqual([['paused', old], []]);
    expect(await found()).toMatchObject({ kept: 'memory', nextExecutionId: null, replicaId: null });
    expect(directory.find(sandbox.sandboxId)?.state).toBe('paused');
  }
});

test('an execution that begins after it was taken back, and whose pause is in the store, is ended', async () => {
  const late = await scene(stored, { running: [next] });
  await late.goOn({ state: 'paused', next_execution_id: null });
  expect(await late.settle()).toBeNull();
  expect([late.told, await late.row()]).toEqual([
    [`rules of ${next}`, `kill ${next}`],
    ['paused', old],
  ]);
  // Another process has counted it as running.
  const counted = await scene(stored, { running: [next] });
  await counted.goOn({ state: 'running', next_execution_id: null, execution_id: counted.named(next) });
  await counted.settle();
  expect([counted.told, await counted.row()]).toEqual([[`rules of ${next}`], ['running', next]]);
  // It is only there.
  const only = await scene(resuming, { running: [next] });
  await only.goOn({ replica_id: 'another', next_execution_id: 'another' });
  await only.settle();
  expect([only.told, (await only.row())?.[0]]).toEqual([[`rules of ${next}`], 'resuming']);
});

test('if a machine was taken out, everything is lost except what is in the store', async () => {
  const lost = await scene(resuming, { running: [next] }, true);
  expect([await lost.settle(), await lost.row(), lost.told]).toEqual([null, null, []]);
  const pausing = await scene({ state: 'pausing', durability: 'cluster' }, {}, true);
  expect([await pausing.settle(), await pausing.row()]).toEqual([null, null]);
  const kept = await scene(stored, { running: [next] }, true);
  await kept.settle();
  expect([await kept.row(), kept.told]).toEqual([['paused', old], []]);
  // A machine that belongs to the cluster is asked.
  const known = await scene(resuming, { running: [next] }, true);
  const joined = { nodeId: known.nodeId, address: '192.0.2.1:1', certificates: [], renewAtUs: 0, joinedAtUs: 0 };
  await putClusterNode(db, joined, null);
  await known.settle();
  expect(await known.row()).toEqual(['running', next]);
});

test('an execution that ended while its node was asked has not begun', async () => {
  const { node, sandbox, named } = await scene({}, {});
  const target = { sandboxId: sandbox.sandboxId, executionId: named(next) };
  expect(await findBegun(node, target)).toBeNull();
  expect(await findBegun({ ...node, withdraw: async () => false }, target)).toBeNull();
});
