import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox } from 'e2b';
import { postgresPrograms, withoutPostgres } from '../api/postgres.ts';
import {
  type Cluster,
  connectionTo,
  controlOf,
  createOn,
  layersEverywhere,
  startCluster,
  until,
} from '../cluster/support/cluster.ts';
import { counted, startCounter } from '../cluster/support/counter.ts';
import { atRest } from '../cluster/support/invariants.ts';
import { type FaultyS3, startFaultyS3 } from '../cluster/support/faulty-s3.ts';
import { withoutS3 } from '../support/s3-server.ts';
import { testUnless } from '../support/skip.ts';

// A store that does everything wrong that a store can, one thing after another. Creates, and pauses on machines, go on;
// a pause into the store is answered once it is there, or says that it is not, and is there after the fault.

setDefaultTimeout(20 * 60_000);
const programs = postgresPrograms();
const skipped = withoutPostgres() ?? withoutS3();
const storeTest = testUnless(skipped);

let cluster: Cluster;
let s3: FaultyS3;

beforeAll(async () => {
  if (skipped !== undefined || !programs) return;
  cluster = await startCluster(
    programs,
    { controls: 1, nodes: 2 },
    { ATOLL_ISOLATION_SECONDS: '600' },
    async address => {
      s3 = await startFaultyS3(address);
      return s3.settings;
    },
  );
});
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await s3?.[Symbol.asyncDispose]();
});

const pause = (sandboxId: string, body: object) =>
  controlOf(cluster, 0).call('POST', `/sandboxes/${sandboxId}/pause`, body);

storeTest('whatever the store does, machines work on, and no pause is called stored that is not', async () => {
  await layersEverywhere(cluster);
  await until('the store has the layers', async () => {
    const builds = await cluster.query<{ layers_stored: number }>("select * from builds where status = 'ready'");
    return builds.length > 0 && builds.every(build => Number(build.layers_stored) === 1);
  });
  const [one, two] = cluster.nodes;
  if (!one || !two) throw new Error('two machines were started');
  for (const fault of ['down', 'error', 'refused', 'full', 'not-found'] as const) {
    const sandbox = await createOn(cluster, one, { timeoutMs: 3_600_000 });
    const before = await startCounter(sandbox);
    s3.fail(fault, 'PUT');
    const refused = await pause(sandbox.sandboxId, { durability: 'cluster' });
    const said = (await refused.json()) as { error_code: string; message: string };
    expect(said).toMatchObject({ error_code: 'sandbox_pause_not_stored' });
    // On a 503, clients assume that it runs on.
    expect([fault, refused.status]).toEqual([fault, said.message.includes('is paused') ? 500 : 503]);
    // It runs or is paused on its machine, and continues there either way.
    expect((await counted(await Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 0)))).pid).toBe(before.pid);
    const other = await Sandbox.create('base', connectionTo(cluster, 0));
    expect((await pause(other.sandboxId, {})).status).toBe(204);
    expect(
      (await (await Sandbox.connect(other.sandboxId, connectionTo(cluster, 0))).commands.run('echo on')).stdout,
    ).toBe('on\n');
    expect(await other.kill()).toBe(true);
    s3.work();
    await until(
      `it is stored after ${fault}`,
      async () => (await pause(sandbox.sandboxId, { durability: 'cluster' })).ok,
    );
    // And it is what was stored: on another machine.
    await cluster.atoll(0, 'node', 'drain', one.nodeId, '--mode', 'pause', '--no-wait');
    const there = await Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 0));
    expect(await cluster.homeOf(sandbox.sandboxId)).toBe(two);
    expect((await counted(there)).pid).toBe(before.pid);
    expect(await there.kill()).toBe(true);
    await cluster.atoll(0, 'node', 'uncordon', one.nodeId);
  }
  await atRest(cluster);
});

storeTest(
  'bytes that the store has changed, or that it does not give, are no sandbox; its row says what holds',
  async () => {
    await layersEverywhere(cluster);
    const [one] = cluster.nodes;
    if (!one) throw new Error('two machines were started');
    const sandbox = await createOn(cluster, one, { timeoutMs: 3_600_000 });
    const before = await startCounter(sandbox);
    expect((await pause(sandbox.sandboxId, { durability: 'cluster' })).status).toBe(204);
    await cluster.atoll(0, 'node', 'drain', one.nodeId, '--mode', 'pause', '--no-wait');
    for (const fault of ['other-bytes', 'cut', 'error'] as const) {
      s3.fail(fault, 'GET');
      const { sandboxId } = sandbox;
      const refused = await controlOf(cluster, 0).call('POST', `/sandboxes/${sandboxId}/connect`, { timeout: 60 });
      expect([fault, refused.status >= 500]).toEqual([fault, true]);
      expect((await Sandbox.getInfo(sandboxId, connectionTo(cluster, 0))).state).toBe('paused');
      s3.work();
    }
    const there = await Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 0));
    expect(await cluster.homeOf(sandbox.sandboxId)).not.toBe(one);
    expect((await counted(there)).pid).toBe(before.pid);
    expect(await there.kill()).toBe(true);
    await cluster.atoll(0, 'node', 'uncordon', one.nodeId);
    await atRest(cluster);
  },
);
