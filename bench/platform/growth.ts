import { availableMiB, cpuMsFromNow, familyOf } from '../measure/processes.ts';
import { load, loadText } from '../operator/load.ts';
import { summarize, timeEach } from '../measure/statistics.ts';
import type { Client, Sandbox, Target } from './client.ts';
import type { Figure, Plot } from './report.ts';
import { createLatency, killAll } from './series.ts';

const settleMs = 6_000; // refills, and the garbage that agents collect after their first work
/** Periodic work of the platform happens several times within this. */
const idleSeconds = 30;
/** Until new sandboxes have nothing more to report and are left alone. */
const settleSeconds = 8;
const createsAtOnce = 10;
const apiClients = 16;
const apiSeconds = 5;
/** A team's limit: one place is for the sandboxes that are measured. */
const concurrentMax = 500;

type Point = {
  sandboxes: number;
  createP50: number;
  createP99: number;
  killP50: number;
  listP50: number;
  listP99: number;
  metricsP50: number;
  manyMetricsP50: number;
  apiP99: number;
  mibEach: number;
  idlePercent: number;
};

/**
 * How latency, memory and idle CPU grow with the number of idle sandboxes, one point for each of `steps`; then a crash
 * and a restart with all of them.
 */
export async function growth(
  client: Client,
  target: Target,
  steps: number[],
): Promise<{ figures: Figure[]; plots: Plot[] }> {
  const sandboxes: Sandbox[] = [];
  const points: Point[] = [];
  const figures: Figure[] = [];
  const emptyMiB = availableMiB();
  try {
    for (const step of steps) {
      while (sandboxes.length < step)
        sandboxes.push(...(await createMany(client, Math.min(createsAtOnce, step - sandboxes.length))));
      await Bun.sleep(settleMs);
      points.push(await pointOf(client, target, sandboxes, emptyMiB));
    }
    figures.push(await apiLoad(client, sandboxes).catch(failure));
    figures.push(await restart(client, target, sandboxes.length).catch(failure));
  } catch (error) {
    figures.push(failure(error));
  } finally {
    await killAll(client, sandboxes);
  }
  const last = points.at(-1);
  if (last) {
    figures.unshift(
      {
        name: `memory of an idle sandbox, of ${last.sandboxes}`,
        goal: '≤ 8 MiB in all',
        value: `${last.mibEach.toFixed(1)} MiB`,
      },
      {
        name: `idle CPU with ${last.sandboxes} sandboxes`,
        goal: '≤ 3 % of a core',
        value: `${last.idlePercent.toFixed(1)} %`,
      },
      { name: `API p99 with ${last.sandboxes} sandboxes`, goal: '≤ 50 ms', value: `${last.apiP99.toFixed(1)} ms` },
      {
        name: `create with ${last.sandboxes} sandboxes`,
        goal: 'as with none',
        value: `${last.createP50.toFixed(1)} ms, ${points[0]?.createP50.toFixed(1)} ms with ${points[0]?.sandboxes}`,
      },
    );
  }
  return { figures, plots: plotsOf(points) };
}

const failure = (error: unknown): Figure => ({
  name: 'many idle sandboxes, a part of it',
  goal: '',
  value: `failed: ${error instanceof Error ? error.message : String(error)}`,
});

/** API answers per second through the edge, while they all run. */
async function apiLoad(client: Client, sandboxes: Sandbox[]): Promise<Figure> {
  const one = () => sandboxes[Math.floor(Math.random() * sandboxes.length)]?.sandboxID ?? '';
  const measured = await load(apiClients, apiSeconds, async () =>
    (await client.api('GET', `/sandboxes/${one()}`)).text(),
  );
  return {
    name: `API requests with ${sandboxes.length} sandboxes, ${apiClients} clients`,
    goal: '',
    value: loadText(measured),
  };
}

function createMany(client: Client, count: number): Promise<Sandbox[]> {
  return Promise.all(Array.from({ length: count }, () => client.create()));
}

async function pointOf(client: Client, target: Target, sandboxes: Sandbox[], emptyMiB: number): Promise<Point> {
  await Bun.sleep(settleSeconds * 1000);
  const cpuMs = cpuMsFromNow(familyOf(target.pid));
  await Bun.sleep(idleSeconds * 1000);
  const idlePercent = cpuMs() / idleSeconds / 10;
  const mibEach = sandboxes.length > 0 ? (emptyMiB - availableMiB()) / sandboxes.length : 0;
  const get = (path: string) => async () => (await client.api('GET', path)).text();
  const ids = sandboxes.slice(0, 100).map(({ sandboxID }) => sandboxID);
  const list = summarize(await timeEach(50, get('/v2/sandboxes?limit=100')));
  const one = summarize(await timeEach(200, get('/v2/sandboxes?limit=1')));
  const metrics = ids.length > 0 ? summarize(await timeEach(50, get(`/sandboxes/${ids[0]}/metrics`))) : undefined;
  const many =
    ids.length > 0 ? summarize(await timeEach(50, get(`/sandboxes/metrics?sandbox_ids=${ids.join(',')}`))) : undefined;
  const { length } = sandboxes;
  if (length >= concurrentMax) await killAll(client, sandboxes.splice(concurrentMax - 1));
  const [create, kill] = await createLatency(client, { name: '', count: 30, goal: '' });
  sandboxes.push(...(await createMany(client, length - sandboxes.length)));
  return {
    sandboxes: length,
    createP50: create?.summary?.median ?? Number.NaN,
    createP99: create?.summary?.p99 ?? Number.NaN,
    killP50: kill?.summary?.median ?? Number.NaN,
    listP50: list.median,
    listP99: list.p99,
    metricsP50: metrics?.median ?? 0,
    manyMetricsP50: many?.median ?? 0,
    apiP99: Math.max(list.p99, one.p99),
    mibEach,
    idlePercent,
  };
}

/** From the crash of a platform until its successor serves with every sandbox adopted. */
async function restart(client: Client, target: Target, running: number): Promise<Figure> {
  const start = performance.now();
  await target.crashAndRestart();
  const seconds = (performance.now() - start) / 1000;
  const adopted = Number(
    (await client.api('GET', '/v2/sandboxes?state=running&limit=1')).headers.get('x-total-running'),
  );
  return {
    name: `restart after a crash with ${running} sandboxes`,
    goal: '≤ 5 s, all adopted',
    value: `${seconds.toFixed(2)} s, ${adopted} adopted`,
  };
}

function plotsOf(points: Point[]): Plot[] {
  const line = (name: string, pick: (point: Point) => number) => ({
    name,
    points: points.map(point => ({ x: point.sandboxes, y: pick(point) })),
  });
  const xLabel = 'sandboxes running';
  return [
    {
      file: 'create',
      title: 'Create and kill as sandboxes grow',
      xLabel,
      yLabel: 'ms',
      lines: [
        line('create, p50', p => p.createP50),
        line('create, p99', p => p.createP99),
        line('kill, p50', p => p.killP50),
      ],
    },
    {
      file: 'list',
      title: 'Lists as sandboxes grow',
      xLabel,
      yLabel: 'ms',
      lines: [
        line('100 a page, p50', p => p.listP50),
        line('100 a page, p99', p => p.listP99),
        line('slowest of all, p99', p => p.apiP99),
      ],
    },
    {
      file: 'metrics',
      title: 'Metrics as sandboxes grow',
      xLabel,
      yLabel: 'ms',
      lines: [line('of one, p50', p => p.metricsP50), line('of up to 100, p50', p => p.manyMetricsP50)],
    },
    {
      file: 'memory',
      title: 'Memory of each idle sandbox',
      xLabel,
      yLabel: 'MiB',
      lines: [line('MiB each', p => p.mibEach)],
    },
    {
      file: 'idle-cpu',
      title: 'CPU while all sandboxes are idle',
      xLabel,
      yLabel: '% of a core',
      lines: [line('all of it', p => p.idlePercent)],
    },
  ];
}
