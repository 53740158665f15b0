import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox } from 'e2b';
import { postgresPrograms } from '../api/postgres.ts';
import { testUnless } from '../support/skip.ts';
import {
  allReady,
  type Cluster,
  connectionTo,
  controlOf,
  createOn,
  layersEverywhere,
  startCluster,
  twoMachines,
  until,
} from './support/cluster.ts';
import { testMemory } from './support/memory-tests.ts';
import { inDirectory, inS3 } from './support/stores.ts';
import { content, homeOfVolume, volumeOn } from './support/volumes.ts';
import { startWriter, written } from './support/writer.ts';

// Machines that are drained while their sandboxes run on: the sandboxes move to others, with memory and files. Also
// memory that sandboxes start from on other machines.

setDefaultTimeout(600_000);
const programs = postgresPrograms();
// With signed URLs if there is a server for them.
const kind = inS3().skipped === undefined ? inS3() : inDirectory();
const clusterTest = testUnless(kind.skipped);
/** How many sandboxes a machine is drained of. */
const count = Number(process.env['DRAINED_SANDBOXES'] ?? 4);

let cluster: Cluster;

beforeAll(async () => {
  // From this level on, the log shows what was moved.
  const env = { ATOLL_ISOLATION_SECONDS: '600', ATOLL_LOG_LEVEL: 'info' };
  if (!kind.skipped && programs)
    cluster = await startCluster(programs, { controls: 2, nodes: 2 }, env, address => kind.start(address));
});
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await kind.stop();
});

clusterTest('sandboxes of a drained machine go on at another one while they write, and none is lost', async () => {
  await layersEverywhere(cluster);
  const [one, two] = twoMachines(cluster);
  const made: Sandbox[] = [];
  for (let number = 0; number < count; number++) made.push(await createOn(cluster, one, { timeoutMs: 3_600_000 }));
  const before = new Map<string, { pid: string; count: number }>();
  for (const sandbox of made) before.set(sandbox.sandboxId, await startWriter(sandbox));
  const ends = new Map<string, string>();
  const infoOf = ({ sandboxId }: Sandbox) => Sandbox.getInfo(sandboxId, connectionTo(cluster, 1));
  for (const sandbox of made) ends.set(sandbox.sandboxId, (await infoOf(sandbox)).endAt.toISOString());
  for (const [from, to] of [
    [one, two],
    [two, one],
  ] as const) {
    const dry = await cluster.atoll(0, 'node', 'drain', from.nodeId, '--mode', 'move', '--dry-run');
    expect(dry).toMatchObject({ code: 0, err: expect.stringContaining(`${count} of ${count} sandboxes can go`) });
    // Requests that arrive while they move wait for the end of the move.
    const drained = cluster.atoll(0, 'node', 'drain', from.nodeId, '--mode', 'move');
    const asked = made.map(async sandbox => {
      const again = await Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 1));
      return again.files.exists('/home/user/written');
    });
    expect(await drained).toMatchObject({ code: 0, err: expect.stringContaining('It is empty') });
    expect(await Promise.all(asked)).toEqual(made.map(() => true));
    for (const sandbox of made) {
      expect((await infoOf(sandbox)).state).toBe('running');
      expect(await cluster.homeOf(sandbox.sandboxId)).toBe(to);
      const known = before.get(sandbox.sandboxId);
      const now = await written(await Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 0)), known?.count ?? 0);
      expect(now.pid).toBe(known?.pid ?? '');
      before.set(sandbox.sandboxId, now);
    }
    expect(await cluster.atoll(0, 'node', 'uncordon', from.nodeId)).toMatchObject({ code: 0 });
    await allReady(cluster);
  }
  // Most of each arrived while it still ran.
  const moves = [0, 1].flatMap(
    control =>
      controlOf(cluster, control)
        .log()
        .match(/a sandbox was moved.*/g) ?? [],
  );
  expect(moves.length).toBeGreaterThanOrEqual(2 * count);
  for (const line of moves) expect(line).toMatch(/draft\W+true/);
  // What stayed behind is removed, not set aside.
  const orphans = JSON.parse((await cluster.atoll(0, 'sandbox', 'orphans', '--json')).out) as { sandboxes: unknown[] };
  expect(orphans.sandboxes).toEqual([]);
  for (const sandbox of made) {
    expect(Date.parse(ends.get(sandbox.sandboxId) ?? '')).toBeLessThanOrEqual((await infoOf(sandbox)).endAt.getTime());
    expect(await sandbox.kill()).toBe(true);
  }
});

clusterTest(
  'a volume that no sandbox has leaves a drained machine with all that is in it, and comes back',
  async () => {
    await layersEverywhere(cluster);
    const [one, two] = twoMachines(cluster);
    const volume = await volumeOn(cluster, one, 'travels');
    const large = Buffer.alloc(9_000_001, 'content that travels ');
    expect((await content(cluster, volume, 'PUT', 'file?path=/deep/large&force=true', { body: large })).status).toBe(
      201,
    );
    for (const [from, to] of [
      [one, two],
      [two, one],
    ] as const) {
      const dry = await cluster.atoll(0, 'node', 'drain', from.nodeId, '--mode', 'move', '--dry-run');
      expect(dry).toMatchObject({ code: 0, err: expect.stringContaining('1 of 1 volume can go') });
      const drained = await cluster.atoll(0, 'node', 'drain', from.nodeId, '--mode', 'move');
      expect(drained).toMatchObject({ code: 0, err: expect.stringContaining('It is empty') });
      expect(await homeOfVolume(cluster, volume)).toBe(to.nodeId);
      const read = await content(cluster, volume, 'GET', 'file?path=/deep/large', { control: 1 });
      expect(Buffer.compare(Buffer.from(await read.arrayBuffer()), large)).toBe(0);
      // Sandboxes follow the volume.
      const sandbox = await Sandbox.create('base', {
        ...connectionTo(cluster, 1),
        volumeMounts: { '/data': 'travels' },
      } as Parameters<typeof Sandbox.create>[1]);
      expect(await cluster.homeOf(sandbox.sandboxId)).toBe(to);
      expect((await sandbox.commands.run('wc -c < /data/deep/large')).stdout.trim()).toBe('9000001');
      expect(await sandbox.kill()).toBe(true);
      expect(await cluster.atoll(0, 'node', 'uncordon', from.nodeId)).toMatchObject({ code: 0 });
      await allReady(cluster);
    }
    // Nothing of it has stayed behind.
    await until(
      'what was left is removed',
      async () => (await cluster.query('select 1 from volume_removals')).length === 0,
    );
    const orphans = JSON.parse((await cluster.atoll(0, 'sandbox', 'orphans', '--json')).out) as { volumes: unknown[] };
    expect(orphans.volumes).toEqual([]);
    expect((await controlOf(cluster, 1).call('DELETE', `/volumes/${volume.volumeID}`)).status).toBe(204);
  },
);

clusterTest('a sandbox that can not be moved is listed with the reason first, and stays', async () => {
  await layersEverywhere(cluster);
  const volume = await controlOf(cluster, 0).call('POST', '/volumes', { name: 'stays' });
  expect(volume.status).toBe(201);
  const made = await controlOf(cluster, 0).call('POST', '/v2/sandboxes', {
    templateID: 'base',
    timeout: 3600,
    volumeMounts: [{ name: 'stays', path: '/mnt/stays' }],
  });
  const { sandboxID } = (await made.json()) as { sandboxID: string };
  expect(made.status).toBe(201);
  const home = await cluster.homeOf(sandboxID);
  const goes = await createOn(cluster, home, { timeoutMs: 3_600_000 });
  for (const flags of [['--dry-run'], []]) {
    const told = await cluster.atoll(0, 'node', 'drain', home.nodeId, '--mode', 'move', ...flags);
    expect(told.code).toBe(flags.length > 0 ? 0 : 1);
    expect(told.out).toMatch(new RegExp(`CAN'T BE MOVED +BECAUSE\\s+${sandboxID} +it has volumes`));
    expect(told.out).toMatch(new RegExp(`volume stays +sandboxes have it: ${sandboxID}`));
    expect(told.err).toContain('Nothing was changed');
  }
  const drain = await cluster.admin(0, 'GET', `/admin/nodes/${home.nodeId}/drain`);
  expect(await drain.json()).toMatchObject({ mode: 'none' });
  const forced = await cluster.atoll(0, 'node', 'drain', home.nodeId, '--mode', 'move', '--force', '--no-wait');
  expect(forced.code).toBe(0);
  await until('the other one is elsewhere', async () => (await cluster.homeOf(goes.sandboxId)) !== home);
  expect(await cluster.homeOf(sandboxID)).toBe(home);
  expect((await Sandbox.getInfo(sandboxID, connectionTo(cluster, 0))).state).toBe('running');
  for (const sandboxId of [sandboxID, goes.sandboxId])
    expect(await Sandbox.kill(sandboxId, connectionTo(cluster, 0))).toBe(true);
});

clusterTest(
  'what can be moved leaves a machine that Kubernetes drains, and what can not is paused with memory',
  async () => {
    for (const { nodeId } of cluster.nodes) await cluster.atoll(0, 'node', 'uncordon', nodeId);
    await layersEverywhere(cluster);
    const control = controlOf(cluster, 0);
    expect((await control.call('POST', '/volumes', { name: 'stays-too' })).status).toBe(201);
    const made = await control.call('POST', '/v2/sandboxes', {
      templateID: 'base',
      timeout: 3600,
      volumeMounts: [{ name: 'stays-too', path: '/mnt/stays' }],
    });
    const { sandboxID } = (await made.json()) as { sandboxID: string };
    const stays = await Sandbox.connect(sandboxID, connectionTo(cluster, 0));
    const home = await cluster.homeOf(sandboxID);
    const goes = await createOn(cluster, home, { timeoutMs: 3_600_000 });
    const before = [await startWriter(goes), await startWriter(stays)];
    // As control writes when Kubernetes says that the machine is cordoned (src/api/operator/reconcilers/cordons.ts).
    await cluster.query(`update nodes set status = 'evicting' where node_id = '${home.nodeId}'`);
    const waited = cluster.atoll(0, 'node', 'drain', home.nodeId, '--mode', 'move', '--force');
    await until('the one is elsewhere', async () => (await cluster.homeOf(goes.sandboxId)) !== home);
    // What stays exists only there; its volume does until it has a copy in the store, which may be now or later.
    const { code, err } = await waited;
    expect(err).toMatch(
      /It runs nothing, and takes no new ones\. 1 paused sandbox (is|and 1 volume are) on its disk alone/,
    );
    expect(code).toBe(0);
    // It waited for what Kubernetes began, and did not turn it into an operator's action.
    const wanted = `select status from nodes where node_id = '${home.nodeId}'`;
    expect((await cluster.query<{ status: string }>(wanted)).map(({ status }) => status)).toEqual(['evicting']);
    const stateOf = async (id: string) => (await Sandbox.getInfo(id, connectionTo(cluster, 1))).state;
    await until('the other one is paused', async () => (await stateOf(sandboxID)) === 'paused');
    expect(await (await cluster.admin(0, 'GET', `/admin/nodes/${home.nodeId}/drain`)).json()).toMatchObject({
      mode: 'move',
      sandboxes: [],
    });
    expect((await cluster.atoll(0, 'node', 'uncordon', home.nodeId)).code).toBe(0);
    await allReady(cluster);
    for (const [index, { sandboxId }] of [goes, stays].entries()) {
      const again = await Sandbox.connect(sandboxId, connectionTo(cluster, 1));
      const now = await written(again, before[index]?.count ?? 0);
      expect(now.pid).toBe(before[index]?.pid ?? '');
      expect(await again.kill()).toBe(true);
    }
  },
);

testMemory(clusterTest, () => cluster);
