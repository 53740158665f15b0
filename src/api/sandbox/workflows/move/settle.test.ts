import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../../base/error.ts';
import { newUuid } from '../../../../base/id.ts';
import { createLog } from '../../../../base/telemetry/log.ts';
import type { ExecutionRef, NodeProtocol, PausedSandbox, ResumeSandbox } from '../../../../protocol/node.ts';
import { putClusterNode } from '../../../cluster/store/nodes.ts';
import { openStore } from '../../../database/database.ts';
import { createIdentity } from '../../../identity/rules/identity.ts';
import type { Nodes } from '../../../placement/nodes.ts';
import { createTeam } from '../../../team/rules/provision-team.ts';
import { SandboxDirectory } from '../../directory/directory.ts';
import { defaultOptions, type SandboxRecord } from '../../record.ts';
import { insertSandbox } from '../../store/create.ts';
import { findSandboxOfAnyTeam } from '../../store/read.ts';
import { removeLeft, settleMove } from './settle.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const nowUs = 1e15;
const clock = () => nowUs;
const { teamId } = await createTeam({ db, clock }, { name: 'T', slug: 't' });
const seed = new Uint8Array(32).fill(1);
const identity = createIdentity({ seed, issuer: 'https://api.example.org', domain: 'example.org', clock });

/** A machine's executions, running and paused. */
type There = { running?: string[]; paused?: string[]; isSetAside?: boolean };
const [home, other] = ['home', 'other'];
const joined = { address: '192.0.2.1:1', certificates: [], renewAtUs: 0, joinedAtUs: 0 };
for (const nodeId of [home, other, 'given up']) await putClusterNode(db, { ...joined, nodeId }, null);
await db.updateTable('cluster_nodes').set({ given_up: 1 }).where('node_id', '=', 'given up').execute();

type Scene = { change?: Partial<SandboxRecord>; home?: There; other?: There; resume?: () => Promise<void> };

/** A sandbox that is being moved from `home` to `other`; `change` says how far the move has come. */
async function scene({ change = {}, resume = async () => {}, ...there }: Scene) {
  const sandboxId = newUuid();
  const named = (execution: string) => `${execution} of ${sandboxId}`;
  const short = (executionId: string) => executionId.split(' of ')[0] ?? '';
  const told: string[] = [];
  const logged: string[] = [];
  const resumed: ResumeSandbox[] = [];
  const machine = (nodeId: string, { running = [], paused = [], isSetAside = false }: There) => {
    const refs = (executions: string[]) => executions.map(execution => ({ sandboxId, executionId: named(execution) }));
    const tell = async (what: string, { executionId }: ExecutionRef) =>
      void told.push(`${nodeId}: ${what} ${short(executionId)}`);
    return {
      list: async () => refs(running),
      listPaused: async () => refs(paused).map((ref): PausedSandbox => ({ ...ref, kept: 'memory', pausedAtMs: 1 })),
      listSetAside: async () => (isSetAside ? [{ sandboxId }] : []),
      async withdraw({ executionId }: ExecutionRef) {
        return ![...running, ...paused].includes(short(executionId));
      },
      kill: (target: ExecutionRef) => tell('kill', target),
      updateNetwork: (target: ExecutionRef) => tell('rules of', target),
      async resume(request: ResumeSandbox) {
        resumed.push(request);
        await resume();
      },
    } as unknown as NodeProtocol;
  };
  const machines: Record<string, NodeProtocol> = {
    [home]: machine(home, there.home ?? {}),
    [other]: machine(other, there.other ?? {}),
  };
  const nodes: Nodes = {
    list: () => Object.entries(machines).map(([nodeId, protocol]) => ({ nodeId, protocol })),
    get(nodeId) {
      const found = machines[nodeId];
      if (found) return found;
      throw new AtollError('unavailable', `${nodeId} is out of reach`);
    },
    away: () => [],
  };
  const directory = new SandboxDirectory(() => ({ accessToken: null, trafficToken: null }));
  const sandbox: SandboxRecord = {
    ...{ ...defaultOptions, sandboxId, executionId: named('old'), teamId, nodeId: home, state: 'moving' },
    ...{ templateId: 't', buildId: 'b', alias: null, agentVersion: '1', cpuCount: 1, memoryMiB: 1, diskMiB: 1 },
    ...{ createdAtUs: 1, startedAtUs: 1, endAtUs: 1, timeoutSeconds: 60, secure: true, volumeMounts: [], kept: null },
    ...{ agentUnresponsive: false, durability: null, nextNodeId: other, replicaId: 'here' },
    ...change,
    nextExecutionId: change.nextExecutionId === null ? null : named(change.nextExecutionId ?? 'next'),
  };
  expect(await insertSandbox(db, sandbox, { concurrentSandboxes: 999, sandboxes: 999 })).toBe('inserted');
  const log = createLog('warn', line => logged.push(line));
  const deps = { clock, db, directory, nodes, seed, identity, log, busy: { replicaId: 'here' } };
  const found = () => findSandboxOfAnyTeam(db, sandboxId);
  directory.apply(sandbox);
  return {
    ...{ sandbox, told, logged, resumed, directory, found, machines, log, nodes },
    settle: () => settleMove(deps, sandbox),
    /** Its machine and its execution; null: it is nowhere. */
    async row() {
      const row = await found();
      return row && [row.state, short(row.executionId), row.nodeId];
    },
    shown: () => directory.find(sandboxId)?.state,
  };
}

test('a move that has begun counts, and the leftovers are removed', async () => {
  const { settle, row, told, shown } = await scene({ home: { paused: ['old'] }, other: { running: ['next'] } });
  await settle();
  expect([await row(), shown()]).toEqual([['running', 'next', other], 'running']);
  expect(told).toEqual(['other: rules of next', 'home: kill old', 'other: rules of next']);
});

test('a sandbox that the other machine has paused since is paused there', async () => {
  const { settle, row, told, shown } = await scene({ other: { paused: ['next'] } });
  await settle();
  expect([await row(), shown(), told]).toEqual([['paused', 'next', other], 'paused', ['home: kill old']]);
});

test('leftovers that can’t be removed are reported', async () => {
  const { sandbox, logged, log, nodes, machines } = await scene({});
  delete machines[home];
  await removeLeft({ nodes, log }, sandbox);
  expect(logged).toEqual([expect.stringContaining('stays for now')]);
});

test('a sandbox that has not begun runs on where it was, and what was brought is removed', async () => {
  const { settle, row, told, shown, found } = await scene({ home: { running: ['old'] } });
  await settle();
  expect([await row(), shown()]).toEqual([['running', 'old', home], 'running']);
  expect(await found()).toMatchObject({ nextNodeId: null, nextExecutionId: null, replicaId: null });
  expect(told).toEqual(['other: kill old', 'home: rules of old', 'home: rules of old']);
});

test('a machine that was to have nothing yet, or is gone for good, is not asked', async () => {
  for (const change of [{ nextExecutionId: null }, { nextNodeId: 'given up' }, { nextNodeId: 'taken out' }]) {
    const { settle, row, told } = await scene({ change, home: { running: ['old'] } });
    await settle();
    expect(await row()).toEqual(['running', 'old', home]);
    expect(told).toEqual(['home: rules of old', 'home: rules of old']);
  }
});

test('a machine that may have it is waited for', async () => {
  for (const away of [home, other]) {
    const { settle, row, machines } = await scene({});
    delete machines[away];
    await expect(settle()).rejects.toMatchObject({ code: 'unavailable' });
    expect(await row()).toEqual(['moving', 'old', home]);
  }
});

test('a sandbox that is paused where it was runs there again, with its memory', async () => {
  const { settle, row, told, resumed, shown } = await scene({ home: { paused: ['old'] } });
  await settle();
  expect(resumed.map(({ memory }) => memory)).toEqual([true]);
  const [request] = resumed;
  expect([await row(), shown()]).toEqual([['running', request?.nextExecutionId ?? '', home], 'running']);
  expect(told).toEqual(['other: kill old', `home: rules of ${request?.nextExecutionId}`]);
});

test('a sandbox that already went back runs where it was', async () => {
  const back = { nextNodeId: home };
  const runs = await scene({ change: back, home: { running: ['next'] } });
  await runs.settle();
  expect([await runs.row(), runs.told]).toEqual([
    ['running', 'next', home],
    ['home: rules of next', 'home: rules of next'],
  ]);
  const paused = await scene({ change: back, home: { paused: ['next'] } });
  await paused.settle();
  expect([await paused.row(), paused.told]).toEqual([['paused', 'next', home], []]);
  // Its machine was asked, and has not begun.
  const again = await scene({ change: back, home: { paused: ['old'] } });
  await again.settle();
  expect([(await again.row())?.[0], again.resumed.length]).toEqual(['running', 1]);
});

test('a sandbox that its own machine can’t run stays paused, and is tried later if that machine is away', async () => {
  for (const durability of ['cluster', null] as const) {
    const { settle, row, found, logged, shown } = await scene({
      change: { durability },
      home: { paused: ['old'] },
      resume: () => Promise.reject(new AtollError('no_space', 'it is full')),
    });
    await settle();
    expect([await row(), shown()]).toEqual([['paused', 'old', home], 'paused']);
    expect(await found()).toMatchObject({ kept: 'memory', durability: durability ?? 'node' });
    expect(logged).toEqual([expect.stringContaining('it is full')]);
  }
  const away = await scene({
    home: { paused: ['old'] },
    resume: () => Promise.reject(new AtollError('unavailable', 'it went away')),
  });
  await expect(away.settle()).rejects.toThrow('it went away');
  // The next process asks its own machine for this one.
  expect(await away.found()).toMatchObject({ state: 'moving', nextNodeId: home, nextExecutionId: expect.any(String) });
  expect(away.logged).toEqual([]);
});

test('a sandbox that is nowhere is lost, and one that is set aside is left to an operator', async () => {
  const lost = await scene({});
  await lost.settle();
  expect([await lost.row(), lost.directory.size]).toEqual([null, 0]);
  expect(lost.logged).toEqual([expect.stringContaining('a sandbox is gone from its node')]);
  const aside = await scene({ home: { isSetAside: true } });
  await aside.settle();
  expect([await aside.row(), aside.logged]).toEqual([['moving', 'old', home], []]);
});

test('if its machine was taken out for good, a sandbox that has not begun elsewhere is lost', async () => {
  const { settle, row, told } = await scene({ change: { nodeId: 'taken out' }, home: { running: ['old'] } });
  await settle();
  expect([await row(), told]).toEqual([null, ['other: kill old']]);
});

test('work of somebody else is left alone', async () => {
  for (const change of [{ replicaId: 'there' }, { replicaId: null }, { state: 'running' as const }]) {
    const { settle, row, told } = await scene({ change, other: { running: ['next'] } });
    await settle();
    expect([(await row())?.[1], told]).toEqual(['old', []]);
  }
  const gone = await scene({ other: { running: ['next'] } });
  await db.deleteFrom('sandboxes').where('sandbox_id', '=', gone.sandbox.sandboxId).execute();
  await gone.settle();
  expect(gone.told).toEqual([]);
});

test('a sandbox that another process takes over while it goes back belongs to that process', async () => {
  const { settle, row, resumed, sandbox, machines } = await scene({ home: { paused: ['old'] } });
  const listPaused = machines[home]?.listPaused;
  const taken = async () => {
    const set = { replica_id: 'there' };
    await db.updateTable('sandboxes').set(set).where('sandbox_id', '=', sandbox.sandboxId).execute();
    return (await listPaused?.()) ?? [];
  };
  Object.assign(machines[home] ?? {}, { listPaused: taken });
  await settle();
  expect([await row(), resumed]).toEqual([['moving', 'old', home], []]);
});
