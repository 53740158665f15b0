import { expect, test } from 'bun:test';
import { pruneMetrics, teamWatch } from '../../src/api/metrics/reconcilers/team.ts';
import { latestBefore, recordTeams } from '../../src/api/metrics/store/team.ts';
import { placesOf } from '../../src/api/sandbox/store/past.ts';
import type { SandboxSample } from '../../src/protocol/node-usage.ts';
import { onEachDatabase } from './databases.ts';
import { adminToken, Platform, until } from './platform.ts';

const sample = (atSeconds: number): SandboxSample => ({
  atSeconds,
  cpuCount: 2,
  cpuUsedPct: 12.5,
  memUsed: 1024,
  memTotal: 4096,
  memCache: 512,
  diskUsed: 100,
  diskTotal: 1000,
});
const nowSeconds = () => Math.floor(Date.now() / 1000);

onEachDatabase(database => {
  test('samples of a sandbox: by range, of its team alone, and also when it is gone', async () => {
    await using platform = await Platform.start({ database });
    const other = await platform.otherTeam();
    const { sandboxID } = await platform.createSandbox();
    const path = `/sandboxes/${sandboxID}/metrics`;
    expect((await platform.call('GET', path)).body).toEqual([]);
    platform.node.sampled.set(sandboxID, [sample(1000), sample(1005), sample(1010)]);
    const seconds = async (query: string) =>
      ((await platform.call('GET', `${path}${query}`)).body as { timestampUnix: number }[]).map(
        metric => metric.timestampUnix,
      );
    expect((await platform.call('GET', path)).body).toContainEqual({
      timestamp: '1970-01-01T00:16:40.000000Z',
      timestampUnix: 1000,
      cpuCount: 2,
      cpuUsedPct: 12.5,
      memUsed: 1024,
      memTotal: 4096,
      memCache: 512,
      diskUsed: 100,
      diskTotal: 1000,
    });
    expect(await seconds('?start=1005')).toEqual([1005, 1010]);
    expect(await seconds('?end=1005')).toEqual([1000, 1005]);
    expect(await seconds('?start=1005&end=1005')).toEqual([1005]);
    expect(await seconds('?start=0&end=999')).toEqual([]);
    for (const query of ['?start=2&end=1', '?start=-1', '?end=x', '?start=1.5', '?start='])
      expect({ query, status: (await platform.call('GET', path + query)).status }).toEqual({ query, status: 400 });
    expect((await platform.call('GET', path, undefined, { 'x-api-key': other.key })).body).toEqual([]);
    expect((await platform.call('GET', '/sandboxes/iunknown/metrics')).body).toEqual([]);
    expect((await platform.call('GET', '/sandboxes/no_id/metrics')).status).toBe(400);

    expect((await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
    expect(await seconds('')).toEqual([1000, 1005, 1010]);
    expect((await platform.call('GET', path, undefined, { 'x-api-key': other.key })).body).toEqual([]);
    await pruneMetrics(
      { ...platform.api.parts, clock: () => (Date.now() + 25 * 3_600_000) * 1000 },
      { teamDays: 14, pastSandboxHours: 24 },
    );
    expect(await seconds('')).toEqual([]);
  });

  test('the latest samples of several sandboxes', async () => {
    await using platform = await Platform.start({ database });
    const other = await platform.otherTeam();
    const [first, second, silent] = [
      await platform.createSandbox(),
      await platform.createSandbox(),
      await platform.createSandbox(),
    ];
    platform.node.sampled.set(first.sandboxID, [sample(1000), sample(1005)]);
    platform.node.sampled.set(second.sandboxID, [sample(2000)]);
    const ask = (ids: string[], key = platform.key) =>
      platform.call('GET', `/sandboxes/metrics?sandbox_ids=${ids.join(',')}`, undefined, { 'x-api-key': key });
    const latest = async (ids: string[], key?: string) => {
      const { sandboxes } = (await ask(ids, key)).body as { sandboxes: Record<string, { timestampUnix: number }> };
      return Object.fromEntries(Object.entries(sandboxes).map(([id, metric]) => [id, metric.timestampUnix]));
    };
    expect(await latest([first.sandboxID, second.sandboxID, silent.sandboxID, 'iunknown'])).toEqual({
      [first.sandboxID]: 1005,
      [second.sandboxID]: 2000,
    });
    expect(await latest([first.sandboxID], other.key)).toEqual({});
    const many = Array.from({ length: 100 }, (_, index) => `i${index}`);
    expect(await latest(many)).toEqual({});
    expect((await ask([...many, 'i100'])).status).toBe(400);
    expect((await ask(['i1', 'i2', 'i1'])).status).toBe(400);
    expect((await ask(['i1', 'i1-6532622b'])).status).toBe(400);
    expect((await ask(['no_id'])).status).toBe(400);
    expect((await platform.call('GET', '/sandboxes/metrics')).status).toBe(400);
  });

  test('the platform notes what its teams run and start, and tells it to nobody else', async () => {
    await using platform = await Platform.start({ database });
    const other = await platform.otherTeam();
    const path = `/teams/${platform.team.teamId}/metrics`;
    expect((await platform.call('GET', path)).body).toEqual([]);
    const sandboxes = [await platform.createSandbox(), await platform.createSandbox(), await platform.createSandbox()];
    const watch = teamWatch(platform.api.parts);
    await watch();
    type Point = {
      concurrentSandboxes: number;
      sandboxStartRate: number;
      sandboxSeconds: number;
      timestampUnix: number;
    };
    const start = nowSeconds() - 300;
    const points = async () => (await platform.call('GET', `${path}?start=${start}`)).body as Point[];
    expect(Math.max(...(await points()).map(point => point.concurrentSandboxes))).toBe(3);
    expect((await points()).reduce((sum, point) => sum + point.sandboxStartRate * 60, 0)).toBeCloseTo(3);
    // Three that ran at the end of one minute, or of two if the minute changed in between.
    expect([180, 360]).toContain((await points()).reduce((sum, point) => sum + point.sandboxSeconds, 0));
    // One that was started and killed between two looks still counts as started.
    const short = await platform.createSandbox();
    for (const { sandboxID } of [short, ...sandboxes]) await platform.call('DELETE', `/sandboxes/${sandboxID}`);
    await watch();
    expect((await points()).reduce((sum, point) => sum + point.sandboxStartRate * 60, 0)).toBeCloseTo(4);
    const max = async (metric: string) =>
      (await platform.call('GET', `${path}/max?metric=${metric}`)).body as { value: number; timestampUnix: number };
    expect(await max('concurrent_sandboxes')).toMatchObject({ value: 3 });
    expect((await max('sandbox_start_rate')).value).toBeGreaterThan(0);
    await until(async () => (await latestBefore(platform.store.db, platform.team.teamId, nowSeconds() + 120)) === 0);

    // Nobody was seen there yet, and no date is that far.
    for (const later of [nowSeconds() + 600, Number.MAX_SAFE_INTEGER]) {
      for (const list of [path, `${path}/templates`])
        expect(await platform.call('GET', `${list}?start=${later}`)).toMatchObject({ status: 200, body: [] });
      const highest = await platform.call('GET', `${path}/max?metric=concurrent_sandboxes&start=${later}`);
      expect(highest).toMatchObject({ status: 200, body: { value: 0 } });
    }

    for (const route of [path, `${path}/max?metric=concurrent_sandboxes`]) {
      expect((await platform.call('GET', route, undefined, { 'x-api-key': other.key })).status).toBe(403);
      expect((await platform.call('GET', route.replace(platform.team.teamId, 'nonsense'))).status).toBe(403);
    }
    for (const query of ['?start=2&end=1', '?start=-1', '?end=now'])
      expect((await platform.call('GET', path + query)).status).toBe(400);
    expect((await platform.call('GET', `${path}/max`)).status).toBe(400);
    expect((await platform.call('GET', `${path}/max?metric=fame`)).status).toBe(400);
  });

  test('a week of a team is told in at most a thousand points, and what is older than is kept goes', async () => {
    await using platform = await Platform.start({ database });
    const { teamId } = platform.team;
    const { db } = platform.store;
    const now = nowSeconds();
    const firstMinute = now - (now % 60) - 7 * 24 * 3600;
    const minutes = Array.from({ length: 7 * 24 * 60 }, (_, index) => ({
      team_id: teamId,
      at_seconds: firstMinute + index * 60,
      concurrent: index % 100,
      latest: 1,
      starts: 6,
    }));
    await db.transaction().execute(async writing => {
      for (let at = 0; at < minutes.length; at += 1000)
        await writing
          .insertInto('team_metrics')
          .values(minutes.slice(at, at + 1000))
          .execute();
    });
    const path = `/teams/${teamId}/metrics`;
    const points = (await platform.call('GET', path)).body as {
      timestampUnix: number;
      concurrentSandboxes: number;
      sandboxStartRate: number;
    }[];
    expect(points.length).toBeGreaterThan(900);
    expect(points.length).toBeLessThanOrEqual(1000);
    expect(Math.max(...points.map(point => point.concurrentSandboxes))).toBe(99);
    expect(points.slice(1, -1).every(point => Math.abs(point.sandboxStartRate - 0.1) < 1e-9)).toBe(true);
    expect(
      (
        await platform.call(
          'GET',
          `${path}/max?metric=concurrent_sandboxes&start=${firstMinute}&end=${firstMinute + 3000}`,
        )
      ).body,
    ).toMatchObject({ value: 50, timestampUnix: firstMinute + 3000 });
    await pruneMetrics(platform.api.parts, { teamDays: 1, pastSandboxHours: 24 });
    const left = await db
      .selectFrom('team_metrics')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    expect(Number(left.count)).toBeGreaterThanOrEqual(24 * 60 - 1);
    expect(Number(left.count)).toBeLessThanOrEqual(24 * 60 + 1);
  });

  test('sightings of a minute add up', async () => {
    await using platform = await Platform.start({ database });
    const { teamId } = platform.team;
    for (const [running, starts] of [
      [2, 1],
      [5, 3],
      [1, 0],
    ] as const)
      await recordTeams(platform.store.db, 6000, [{ teamId, running, starts }]);
    const row = await platform.store.db
      .selectFrom('team_metrics')
      .selectAll()
      .where('at_seconds', '=', 6000)
      .executeTakeFirstOrThrow();
    expect(row).toMatchObject({ concurrent: 5, latest: 1, starts: 4 });
  });

  test('whose a sandbox was is known when it ended by itself', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    const [running] = platform.node.executions();
    if (!running) throw new Error('nothing runs');
    platform.node.exit(running);
    await until(async () => (await platform.call('GET', `/sandboxes/${sandboxID}`)).status === 404);
    expect(await placesOf(platform.store.db, platform.team.teamId, [sandboxID])).toEqual([
      { sandboxId: sandboxID, nodeId: 'node-1' },
    ]);
  });
});

test('nodes tell what they are and what they use; traffic is told of a sandbox that runs', async () => {
  await using platform = await Platform.start();
  const { sandboxID } = await platform.createSandbox();
  const nodes = (await platform.call('GET', '/nodes', undefined, { 'x-admin-token': adminToken })).body as Record<
    string,
    unknown
  >[];
  expect(nodes).toHaveLength(1);
  expect(nodes[0]).toMatchObject({
    id: 'node-1',
    sandboxCount: 1,
    sandboxStartingCount: 0,
    createSuccesses: 1,
    machineInfo: { cpuFamily: '6', cpuModel: '85', cpuModelName: 'A processor', cpuArchitecture: 'x86_64' },
    metrics: {
      allocatedCPU: 2,
      cpuCount: 2,
      cpuPercent: 12,
      allocatedMemoryBytes: 1024 ** 3,
      memoryUsedBytes: 1024 ** 3,
      memoryTotalBytes: 4 * 1024 ** 3,
      hugePageSizeBytes: 2 * 1024 ** 2,
    },
  });
  const detail = (await platform.call('GET', '/nodes/node-1', undefined, { 'x-admin-token': adminToken }))
    .body as Record<string, unknown>;
  expect(detail).toMatchObject({ id: 'node-1', metrics: { disks: [{ mountPoint: '/', device: '/dev/sda1' }] } });
  expect('sandboxStartingCount' in detail).toBe(false);
  expect(
    (await platform.call('GET', '/nodes?clusterID=elsewhere', undefined, { 'x-admin-token': adminToken })).body,
  ).toEqual([]);
  expect((await platform.call('GET', '/nodes/node-2', undefined, { 'x-admin-token': adminToken })).status).toBe(404);

  expect((await platform.call('GET', `/sandboxes/${sandboxID}/traffic`)).body).toEqual({
    bytesOut: 0,
    bytesIn: 0,
    denied: 0,
  });
  await platform.call('POST', `/sandboxes/${sandboxID}/pause`);
  expect((await platform.call('GET', `/sandboxes/${sandboxID}/traffic`)).status).toBe(409);
  expect((await platform.call('GET', '/sandboxes/iunknown/traffic')).status).toBe(404);
});
