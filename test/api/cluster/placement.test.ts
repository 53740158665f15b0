import { expect, setDefaultTimeout } from 'bun:test';
import { testUnless } from '../../support/skip.ts';
import { postgresPrograms, withoutPostgres } from '../postgres.ts';
import { changeNodeStatus } from '../../../src/api/operator/rules/nodes.ts';
import { newUuid } from '../../../src/base/id.ts';
import type { AwayNode, Nodes } from '../../../src/api/placement/nodes.ts';
import { hasRoom } from '../../../src/api/placement/has-room.ts';
import { demandsOf } from '../../../src/api/sandbox/rules/demands.ts';
import { AtollError } from '../../../src/base/error.ts';
import { nodeFull } from '../../../src/protocol/no-room.ts';
import type { DurableSnapshots } from '../../../src/api/blob/rules/snapshots.ts';
import { forkSandbox } from '../../../src/api/sandbox/workflows/fork.ts';
import { findTeam } from '../../../src/api/team/store/team.ts';
import { forgetNode } from '../../../src/api/cluster/rules/forget.ts';
import { deleteClusterNode, putClusterNode } from '../../../src/api/cluster/store/nodes.ts';
import type { SandboxDirectory } from '../../../src/api/sandbox/directory/directory.ts';
import { findSandboxOfAnyTeam } from '../../../src/api/sandbox/store/read.ts';
import { until } from '../platform.ts';
import { type FakeCluster, startFakeCluster } from '../support/fake-cluster.ts';

// Several control processes place sandboxes at once: what sandboxes ask for by their metadata, and limits.

setDefaultTimeout(180_000);
const programs = postgresPrograms();
const postgresTest = testUnless(withoutPostgres());
const size = { cpuCount: 8, memoryBytes: 64 * 2 ** 30 };
const labelled = [
  { ...size, labels: { zone: 'a', disk: 'fast' } },
  { ...size, labels: { zone: 'b', disk: 'fast' } },
  { ...size, labels: { zone: 'b' } },
];

/** This many creates at once, spread over all control processes. */
async function storm({ apis, call }: FakeCluster, count: number, body: object = {}) {
  const one = (number: number) =>
    call(number % apis.length, 'POST', '/v2/sandboxes', { templateID: 'base', timeout: 3600, ...body });
  const answers = await Promise.all(Array.from({ length: count }, (_, number) => one(number)));
  return {
    made: answers.filter(({ status }) => status === 201).map(({ body }) => (body as { sandboxID: string }).sandboxID),
    refused: answers
      .filter(({ status }) => status !== 201)
      .map(({ status, body }) => ({ status, ...(body as { message: string }) })),
  };
}

const countsOf = ({ machines }: FakeCluster) => machines.map(({ node }) => node.executions().length);

postgresTest(
  'a sandbox goes to a machine with the labels that its metadata asks for, or is refused with the numbers',
  async () => {
    await using cluster = await startFakeCluster(programs ?? '', { controls: 1, machines: labelled });
    await storm(cluster, 3, { metadata: { 'atoll.node.zone': 'b', 'atoll.node.disk': 'fast' } });
    expect(countsOf(cluster)).toEqual([0, 3, 0]);
    const { made, refused } = await storm(cluster, 1, { metadata: { 'atoll.node.zone': 'c' } });
    expect(made).toEqual([]);
    expect(refused).toMatchObject([
      {
        status: 503,
        message: expect.stringContaining('3 of 3 machines in reach take sandboxes, 0 of these with the labels zone=c'),
      },
    ]);
    expect(countsOf(cluster)).toEqual([0, 3, 0]);
  },
);

postgresTest(
  'sandboxes that are to be apart are on machines of their own, however many are asked for at once',
  async () => {
    await using cluster = await startFakeCluster(programs ?? '', { controls: 2, machines: labelled });
    const apart = { metadata: { 'atoll.apart': 'database' } };
    const { made, refused } = await storm(cluster, 8, apart);
    expect(made).toHaveLength(3);
    expect(countsOf(cluster)).toEqual([1, 1, 1]);
    expect(refused).toHaveLength(5);
    for (const { status, message } of refused)
      expect([status, message]).toEqual([503, expect.stringContaining('atoll.apart=database')]);
    // A create that moves to another machine is checked again in the transaction that takes its place there.
    const { db, nodes } = cluster.apis[0]?.parts ?? {};
    const rows = (await db?.selectFrom('sandboxes').select(['sandbox_id', 'team_id', 'node_id']).execute()) ?? [];
    const [mover, there] = rows;
    if (!db || !nodes || !mover || !there) throw new Error('there are three sandboxes');
    const demands = demandsOf({ teamId: mover.team_id, metadata: apart.metadata });
    const one = { cpuCount: 1, memoryMiB: 128, sandboxId: mover.sandbox_id };
    expect(
      await db.transaction().execute(db => hasRoom({ db, nodes }, { ...one, nodeId: there.node_id }, demands)),
    ).toBe(false);
    expect(
      await db.transaction().execute(db => hasRoom({ db, nodes }, { ...one, nodeId: mover.node_id }, demands)),
    ).toBe(true);
    // Others may share these machines, and ended sandboxes make room.
    expect((await storm(cluster, 4, { metadata: { 'atoll.apart': 'web', 'atoll.node.zone': 'b' } })).made).toHaveLength(
      2,
    );
    expect((await storm(cluster, 2)).made).toHaveLength(2);
    expect((await cluster.call(1, 'DELETE', `/sandboxes/${made[0]}`)).status).toBe(204);
    expect((await storm(cluster, 2, apart)).made).toHaveLength(1);
  },
);

postgresTest('the limits of teams and machines hold over all control processes together', async () => {
  const machines = Array.from({ length: 3 }, () => ({ ...size, sandboxesMax: 5 }));
  await using cluster = await startFakeCluster(programs ?? '', {
    controls: 3,
    machines,
    limits: { concurrentSandboxes: 12, sandboxes: 100 },
  });
  const { made, refused } = await storm(cluster, 40);
  expect(made).toHaveLength(12);
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([429]));
  expect(Math.max(...countsOf(cluster))).toBeLessThanOrEqual(5);
  expect(countsOf(cluster).reduce((sum, count) => sum + count)).toBe(12);
  await using full = await startFakeCluster(programs ?? '', {
    controls: 3,
    machines,
    limits: { concurrentSandboxes: 1000, sandboxes: 1000 },
  });
  const over = await storm(full, 40);
  expect(countsOf(full)).toEqual([5, 5, 5]);
  expect(over.made).toHaveLength(15);
  for (const { status, message } of over.refused)
    expect([status, message]).toEqual([503, expect.stringMatching(/room|that much left/)]);
});

postgresTest(
  'what is put on a machine while that is taken out is seen, and nothing comes there afterwards',
  async () => {
    await using cluster = await startFakeCluster(programs ?? '', { controls: 1, machines: [size, size] });
    const { parts } = cluster.apis[0] ?? {};
    const [sandboxId = ''] = (await storm(cluster, 1)).made;
    const nodeId = cluster.machines.find(({ node }) => node.executions().length === 0)?.nodeId;
    if (!parts || nodeId === undefined) throw new Error('there are a control process and two machines');
    const { db, nodes } = parts;
    const wanted = { nodeId, cpuCount: 1, memoryMiB: 128 };
    const isLocked = Promise.withResolvers<void>();
    const put = db.transaction().execute(async db => {
      expect(await hasRoom({ db, nodes }, wanted)).toBe(true);
      isLocked.resolve();
      // A window: who takes the machine out meanwhile waits for the lock.
      await Bun.sleep(300);
      await db.updateTable('sandboxes').set({ node_id: nodeId }).where('sandbox_id', '=', sandboxId).execute();
    });
    await isLocked.promise;
    await expect(forgetNode(parts, nodeId)).rejects.toMatchObject({ code: 'conflict' });
    await put;
    await deleteClusterNode(db, nodeId);
    expect(await db.transaction().execute(db => hasRoom({ db, nodes }, wanted))).toBe(false);
  },
);

postgresTest('a row that stayed on a machine that was taken out goes, whatever was done with it', async () => {
  await using cluster = await startFakeCluster(programs ?? '', { controls: 1, machines: [size, size] });
  const { parts } = cluster.apis[0] ?? {};
  const nodeId = cluster.machines[0]?.nodeId;
  if (!parts || nodeId === undefined) throw new Error('there are a control process and two machines');
  const { db } = parts;
  const states = ['starting', 'pausing', 'resuming', 'snapshotting', 'moving', 'killing', 'running'] as const;
  const { made } = await storm(cluster, states.length);
  await deleteClusterNode(db, nodeId);
  await until(() => parts.nodes.list().length === 1);
  for (const [number, state] of states.entries()) {
    const change = { state, node_id: nodeId, ...(state === 'running' && { end_at_us: 0 }) };
    const sandboxId = made[number] ?? '';
    await db.updateTable('sandboxes').set(change).where('sandbox_id', '=', sandboxId).execute();
  }
  await until(async () => (await db.selectFrom('sandboxes').select(['sandbox_id', 'state']).execute()).length === 0);
});

postgresTest(
  'who was cut short while a machine was taken out asks again, and what is moved is settled elsewhere',
  async () => {
    await using cluster = await startFakeCluster(programs ?? '', { controls: 1, machines: [size, size] });
    const { parts } = cluster.apis[0] ?? {};
    if (!parts) throw new Error('there is a control process');
    const { db } = parts;
    const { made } = await storm(cluster, 6);
    // An unreachable machine.
    const row = { nodeId: 'away', address: '203.0.113.9:3010', certificates: [], renewAtUs: 0, joinedAtUs: 0 };
    await putClusterNode(db, row, null);
    const [moving = '', stored = ''] = made;
    await db.updateTable('sandboxes').set({ node_id: 'away', state: 'paused', kept: 'memory' }).execute();
    await db.updateTable('sandboxes').set({ durability: 'cluster' }).where('sandbox_id', '=', stored).execute();
    const isMoving = { state: 'moving', kept: null, replica_id: parts.busy.replicaId } as const;
    const execution = await findSandboxOfAnyTeam(db, moving);
    const left = async () => (await db.selectFrom('sandboxes').select('sandbox_id').execute()).length;
    await parts.busy.while(execution?.executionId ?? '', async () => {
      await db.updateTable('sandboxes').set(isMoving).where('sandbox_id', '=', moving).execute();
      let closed = 0;
      const close = () => {
        if (++closed === 2) throw new Error('the process ends');
      };
      const failing = { ...parts, directory: { close } as unknown as SandboxDirectory };
      // Another process talks to it.
      const leaseUntil = (us: number) => db.updateTable('cluster_nodes').set({ lease_until_us: us }).execute();
      await leaseUntil(parts.clock() + 5_000_000);
      await expect(forgetNode(parts, 'away')).rejects.toMatchObject({ code: 'conflict' });
      expect(await left()).toBe(6);
      await leaseUntil(parts.clock() - 1);
      await expect(forgetNode(failing, 'away')).rejects.toThrow('the process ends');
      expect(await left()).toBe(4);
      expect(await forgetNode(parts, 'away')).toEqual({ lost: { sandboxes: 2, volumes: 0 }, stored: 1 });
      // Not only after the next round, and also if another process has taken it out.
      expect(parts.nodes.away?.()).toEqual([]);
      const stale = {
        ...parts,
        nodes: { ...parts.nodes, list: () => [], away: () => [{ nodeId: 'away' } as AwayNode] } as Nodes,
      };
      await expect(changeNodeStatus(stale, 'away', 'ready')).rejects.toMatchObject({ code: 'not_found' });
      expect(await db.selectFrom('nodes').selectAll().where('node_id', '=', 'away').execute()).toEqual([]);
      // Nothing remains to be removed of a volume that existed only there.
      const [{ team_id } = { team_id: '' }] = await db.selectFrom('teams').select('team_id').execute();
      const volume = { volume_id: newUuid(), team_id, node_id: 'away', name: 'gone', size_mib: 16, created_at_us: 0 };
      await db.insertInto('volumes').values(volume).execute();
      expect((await cluster.call(0, 'DELETE', `/volumes/${volume.volume_id}`)).status).toBe(204);
      expect(await db.selectFrom('volume_removals').selectAll().execute()).toEqual([]);
      expect(await left()).toBe(2);
    });
    await expect(forgetNode(parts, 'away')).rejects.toMatchObject({ code: 'not_found' });
    // Neither machine has it.
    await until(async () => (await left()) === 1);
    expect(await findSandboxOfAnyTeam(db, stored)).toMatchObject({ state: 'paused', durability: 'cluster' });
  },
);

postgresTest('a fork that is made elsewhere, because its source has no room, has an ID of its own', async () => {
  const memory = { architecture: 'x64', kernel: '6.1', criu: '4.0', cpuFlags: [], agent: 'a' };
  const able = { ...size, restores: memory };
  await using cluster = await startFakeCluster(programs ?? '', { controls: 1, machines: [able, able] });
  const { parts } = cluster.apis[0] ?? {};
  const [sandboxID = ''] = (await storm(cluster, 1)).made;
  const home = cluster.machines.find(({ node }) => node.executions().length === 1);
  const team = parts && (await findTeam(parts.db, { slug: 't' }));
  if (!parts || !home || !team) throw new Error('there are a control process, a team and a sandbox');
  home.node.before = async call => {
    if (call === 'create') throw new AtollError('unavailable', 'it is full', { detail: nodeFull });
  };
  const durableSnapshots = {
    isUsable: true,
    store: async () => {},
    facts: async () => ({ driver: 'crun', kept: 'memory', memory }),
  } as unknown as DurableSnapshots;
  const options = { seconds: 60, count: 1 };
  const forks = () =>
    forkSandbox({ ...parts, durableSnapshots }, team, sandboxID, options, new AbortController().signal);
  const [fork] = await forks();
  if (!fork || !('sandbox' in fork)) throw new Error('it was not made', { cause: fork });
  expect(fork.sandbox.nodeId).not.toBe(home.nodeId);
  const past = await parts.db.selectFrom('past_sandboxes').select(['sandbox_id', 'node_id']).execute();
  expect(past).toMatchObject([{ node_id: home.nodeId }]);
  expect(past[0]?.sandbox_id).not.toBe(fork.sandbox.sandboxId);

  // A failure counts for the machine where it happened: the source's machine only had no room.
  const other = cluster.machines.find(({ nodeId }) => nodeId === fork.sandbox.nodeId);
  if (other)
    other.node.before = async call => {
      if (call === 'create') throw new AtollError('internal', 'it broke');
    };
  expect(await forks()).toMatchObject([{ error: { code: 'internal' } }]);
  const counted = [home, other].map(machine => parts.createCounts.of(machine?.nodeId ?? ''));
  expect(counted).toEqual([
    { successes: 1, fails: 0 },
    { successes: 1, fails: 1 },
  ]);
});
