import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox } from 'e2b';
import { postgresPrograms, withoutPostgres } from '../api/postgres.ts';
import {
  type Cluster,
  connectionTo,
  createOn,
  layersEverywhere,
  nodeView,
  startCluster,
  until,
} from '../cluster/support/cluster.ts';
import { counted, startCounter } from '../cluster/support/counter.ts';
import { testUnless } from '../support/skip.ts';

// A machine whose cable is pulled for longer than control waits and then plugged in again, and one that is drained:
// through the published SDK.

setDefaultTimeout(600_000);
const programs = postgresPrograms();
const clusterTest = testUnless(withoutPostgres());

let cluster: Cluster;

beforeAll(async () => {
  if (programs) cluster = await startCluster(programs, { controls: 2, nodes: 2 }, { ATOLL_ISOLATION_SECONDS: '1' });
});
afterAll(async () => cluster?.[Symbol.asyncDispose]());

clusterTest('a machine that was cut off for too long has paused what it had, and a resume brings it back', async () => {
  const connection = connectionTo(cluster, 0);
  await layersEverywhere(cluster);
  const [first, second] = cluster.nodes;
  if (!first || !second) throw new Error('two machines were started');
  const sandbox = await createOn(cluster, first);
  const other = await createOn(cluster, second);
  const { sandboxId } = sandbox;
  const before = await startCounter(sandbox);
  const state = async () => (await Sandbox.getInfo(sandboxId, connection)).state;

  await first.cut();
  await until('control counts the sandbox as paused', async () => (await state()) === 'paused');
  expect((await nodeView(cluster, first))?.status).toBe('unhealthy');
  await expect(Sandbox.connect(sandboxId, connection)).rejects.toThrow('out of reach');
  expect((await other.commands.run('echo on')).stdout).toBe('on\n');

  await first.heal();
  for (const control of [0, 1])
    await until('the machine is back', async () => (await nodeView(cluster, first, control))?.status === 'ready');
  expect(await state()).toBe('paused');
  const same = await Sandbox.connect(sandboxId, connectionTo(cluster, 1));
  const after = await counted(same);
  expect(after.pid).toBe(before.pid);
  expect(after.count).toBeGreaterThanOrEqual(before.count);
  expect((await same.commands.run('cat /tmp/kept')).stdout).toBe('kept\n');
  expect(await cluster.homeOf(sandboxId)).toBe(first);
  expect(await Sandbox.kill(sandboxId, connection)).toBe(true);
  expect(await Sandbox.kill(other.sandboxId, connection)).toBe(true);
});

clusterTest('a machine that is drained pauses what it has, and takes it up again when it is put back', async () => {
  await layersEverywhere(cluster);
  const [node, other] = cluster.nodes;
  if (!node || !other) throw new Error('two machines were started');
  const sandbox = await createOn(cluster, node);
  const stays = await createOn(cluster, other);
  const before = await startCounter(sandbox);
  const moved = await cluster.atoll(0, 'node', 'drain', node.nodeId, '--mode', 'move');
  expect(moved).toMatchObject({ code: 1, out: expect.stringContaining('ATOLL_STORE') });
  const drained = await cluster.atoll(0, 'node', 'drain', node.nodeId, '--mode', 'pause');
  expect(drained).toMatchObject({ code: 0, err: expect.stringContaining('1 paused sandbox is on its disk alone') });
  expect((await Sandbox.getInfo(sandbox.sandboxId, connectionTo(cluster, 1))).state).toBe('paused');
  expect((await Sandbox.getInfo(stays.sandboxId, connectionTo(cluster, 1))).state).toBe('running');
  await expect(Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 1))).rejects.toThrow('being drained');
  const placed = await Sandbox.create('base', connectionTo(cluster, 1));
  expect(await cluster.homeOf(placed.sandboxId)).toBe(other);
  expect((await cluster.atoll(0, 'node', 'uncordon', node.nodeId)).code).toBe(0);
  const after = await counted(await Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 1)));
  expect(after.pid).toBe(before.pid);
  for (const { sandboxId } of [sandbox, stays, placed])
    expect(await Sandbox.kill(sandboxId, connectionTo(cluster, 0))).toBe(true);
});
