import { insertRows } from './rows.ts';
import { type FakeCluster, startFakeCluster } from '../../test/api/support/fake-cluster.ts';
import { postgresPrograms } from '../../test/api/postgres.ts';
import { summarize, timeEach } from '../measure/statistics.ts';
import type { Figure } from '../platform/report.ts';

/** How large the cluster is, and how much is measured. */
type ScaleSizes = { machines: number; sandboxes: number; creates: number; seconds: number };

const pageLimit = 100;
/** Parallel creates in the second series. */
const atOnce = 8;

/** One control process, a real PostgreSQL, and machines that only record what they are told. */
export async function scaleFigures(sizes: ScaleSizes, say: (text: string) => void): Promise<Figure[]> {
  const programs = postgresPrograms();
  if (!programs) return [{ name: 'a large cluster', goal: '', value: 'not measured: PostgreSQL is not installed' }];
  const { machines, sandboxes, creates, seconds } = sizes;
  await using cluster = await startFakeCluster(programs, {
    controls: 1,
    machines: Array.from({ length: machines }, () => ({
      cpuCount: 128,
      memoryBytes: 1024 * 2 ** 30,
      sandboxesMax: 1000,
    })),
    limits: { concurrentSandboxes: 10 * sandboxes, sandboxes: 10 * sandboxes },
  });
  say(`${machines} machines are ready`);
  await insertRows(cluster, sandboxes);
  say(`${sandboxes} sandboxes are in the database`);
  const of = `${machines.toLocaleString('en')} machines, ${sandboxes.toLocaleString('en')} sandboxes of 100 teams`;
  const heartbeats = await heartbeatCores(seconds);
  const one = await timeEach(creates, () => create(cluster));
  const many: number[] = [];
  await Promise.all(
    Array.from({ length: atOnce }, async () => many.push(...(await timeEach(creates / atOnce, () => create(cluster))))),
  );
  const pages = await timeEach(creates, async () => {
    const { status, body } = await cluster.call(0, 'GET', `/v2/sandboxes?limit=${pageLimit}`);
    if (status !== 200 || (body as unknown[]).length !== pageLimit) throw new Error(`a page was answered ${status}`);
  });
  return [
    { name: `${of}: create, control alone`, goal: 'p99 ≤ 50 ms', summary: summarize(one) },
    { name: `${of}: create, control alone, ${atOnce} at a time`, goal: '', summary: summarize(many) },
    { name: `${of}: a page of ${pageLimit}`, goal: '≤ 20 ms', summary: summarize(pages) },
    {
      name: `${of}: heartbeats and reconcilers, with the machines' side of the wire`,
      goal: '≤ 1 core',
      value: `${heartbeats.toFixed(2)} cores`,
    },
  ];
}

async function create(cluster: FakeCluster): Promise<void> {
  const { status, body } = await cluster.call(0, 'POST', '/v2/sandboxes', { templateID: 'base', timeout: 3600 });
  if (status !== 201) throw new Error(`a create was answered ${status}: ${JSON.stringify(body)}`);
}

/** Processor use of this process while nobody makes requests, in cores. */
async function heartbeatCores(seconds: number): Promise<number> {
  const before = process.cpuUsage();
  const start = performance.now();
  await Bun.sleep(seconds * 1000);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / (performance.now() - start);
}
