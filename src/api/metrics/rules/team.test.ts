import { afterAll, expect, test } from 'bun:test';
import { openStore } from '../../database/database.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { recordTeams } from '../store/team.ts';
import { fillIdle, readHighestTeamMetric, readTeamMetrics, readTemplateUse } from './team.ts';

const span = (startSeconds: number, concurrent: number, latest: number) => ({
  startSeconds,
  concurrent,
  starts: 0,
  latest,
  sandboxSeconds: latest * 60,
});
const range = { startSeconds: 600, endSeconds: 1199 };
const values = (spans: ReturnType<typeof fillIdle>) =>
  spans.map(({ startSeconds, concurrent }) => [startSeconds, concurrent]);

test('idle time between rows is reported as zero, and unknown time is not reported', () => {
  // Known until 720, then idle; from 960 on two ran, and the platform was down before 1140.
  const spans = [span(660, 1, 1), span(720, 3, 0), span(960, 2, 2), span(1140, 2, 2)];
  expect(values(fillIdle(spans, null, range, 60))).toEqual([
    [660, 1],
    [720, 3],
    [780, 0],
    [840, 0],
    [900, 0],
    [960, 2],
    [1140, 2],
  ]);
});

test('the state before the range counts', () => {
  expect(fillIdle([], null, range, 300)).toEqual([]);
  expect(fillIdle([], 4, range, 300)).toEqual([]);
  expect(values(fillIdle([], 0, range, 300))).toEqual([
    [600, 0],
    [900, 0],
  ]);
});

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const nowSeconds = 1_700_000_040;
const deps = { db, clock: () => nowSeconds * 1_000_000 };
const mine = await createTeam(deps, { name: 'm', slug: 'm' });
const { teamId } = mine;
const minute = (before: number) => nowSeconds - before * 60;
for (const [before, running, starts] of [
  [30, 3, 6],
  [20, 5, 3],
  [10, 0, 0],
] as const)
  await recordTeams(db, minute(before), [{ teamId, running, starts }]);

test('a team reads what ran in a range, by minute, with the starts per second', async () => {
  const points = await readTeamMetrics(deps, mine, teamId, { start: minute(30), end: minute(8) });
  expect(points).toEqual([
    { atSeconds: minute(30), concurrentSandboxes: 3, sandboxStartRate: 0.1, sandboxSeconds: 180 },
    { atSeconds: minute(20), concurrentSandboxes: 5, sandboxStartRate: 0.05, sandboxSeconds: 300 },
    ...[10, 9, 8].map(before => ({
      atSeconds: minute(before),
      concurrentSandboxes: 0,
      sandboxStartRate: 0,
      sandboxSeconds: 0,
    })),
  ]);
});

test('without a range it is the last week, in at most a thousand points, and none in the future', async () => {
  const points = await readTeamMetrics(deps, mine, teamId, {});
  const times = points.map(({ atSeconds }) => atSeconds);
  expect(points.length).toBeGreaterThan(0);
  expect(Math.min(...times)).toBeGreaterThan(nowSeconds - 7 * 24 * 3600);
  expect(Math.max(...points.map(point => point.concurrentSandboxes))).toBe(5);
  const all = await readTeamMetrics(deps, mine, teamId, { start: minute(10), end: nowSeconds + 10_000_000 });
  expect(all.at(-1)?.atSeconds).toBe(nowSeconds);
  const long = await readTeamMetrics(deps, mine, teamId, { start: minute(100_000) });
  expect(long.length).toBeLessThanOrEqual(1_000);
  expect(Math.max(...long.map(point => point.concurrentSandboxes))).toBe(5);
});

test('the highest value comes with its time; 0 where there is none, and now for the future', async () => {
  const highest = (metric: 'concurrent_sandboxes' | 'sandbox_start_rate', start: number, end?: number) =>
    readHighestTeamMetric(deps, mine, teamId, metric, { start, ...(end !== undefined && { end }) });
  expect(await highest('concurrent_sandboxes', minute(40))).toEqual({ atSeconds: minute(20), value: 5 });
  expect(await highest('sandbox_start_rate', minute(40))).toEqual({ atSeconds: minute(30), value: 0.1 });
  expect(await highest('concurrent_sandboxes', minute(90), minute(80))).toEqual({ atSeconds: minute(90), value: 0 });
  expect(await highest('concurrent_sandboxes', nowSeconds)).toEqual({ atSeconds: nowSeconds, value: 0 });
  expect(await highest('concurrent_sandboxes', nowSeconds + 1)).toEqual({ atSeconds: nowSeconds, value: 0 });
});

test('the future has no points, and other teams’ metrics are not shown', async () => {
  const reads = [
    (id: string, start: number, end?: number) => readTeamMetrics(deps, mine, id, { start, ...(end && { end }) }),
    (id: string, start: number, end?: number) => readTemplateUse(deps, mine, id, { start, ...(end && { end }) }),
    (id: string, start: number, end?: number) =>
      readHighestTeamMetric(deps, mine, id, 'sandbox_start_rate', { start, ...(end && { end }) }),
  ];
  for (const read of reads) {
    await expect(read('another', 0)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(read(teamId, 2, 1)).rejects.toMatchObject({ code: 'invalid' });
  }
  expect(await readTeamMetrics(deps, mine, teamId, { start: nowSeconds + 1 })).toEqual([]);
  expect(await readTemplateUse(deps, mine, teamId, { start: nowSeconds + 1 })).toEqual([]);
});
