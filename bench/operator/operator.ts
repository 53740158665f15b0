import { sql } from 'kysely';
import { insertSandbox } from '../../src/api/sandbox/store/create.ts';
import { markSandboxForKill, deleteSandbox, publishSandbox, setSandboxEnd } from '../../src/api/sandbox/store/state.ts';
import { newSandboxId, newUuid } from '../../src/base/id.ts';
import { Platform, call } from '../../test/api/platform.ts';
import { PostgresCluster, postgresPrograms } from '../../test/api/postgres.ts';
import { summarize } from '../measure/statistics.ts';
import type { Figure } from '../platform/report.ts';
import { loadFromOutside } from './clients.ts';
import { load, loadText } from './load.ts';
import { defaultOptions, type SandboxRecord } from '../../src/api/sandbox/record.ts';

/** How much is measured. */
export type OperatorSizes = {
  /** Sandboxes that are listed page by page. */
  sandboxes: number;
  /** Of each load. */
  seconds: number;
};

const clients = 16;
const pageLimit = 100;
const noLimit = 1_000_000;

/** What an operator asks of the store and the API, on each database, with a node that costs nothing. */
export async function operatorFigures(sizes: OperatorSizes): Promise<Figure[]> {
  const figures = await onDatabase('SQLite', undefined, sizes);
  const programs = postgresPrograms();
  if (!programs) return [...figures, { name: 'PostgreSQL', goal: '', value: 'not measured: it is not installed' }];
  await using cluster = await PostgresCluster.start(programs);
  return [...figures, ...(await onDatabase('PostgreSQL', cluster, sizes))];
}

async function onDatabase(
  name: 'SQLite' | 'PostgreSQL',
  cluster: PostgresCluster | undefined,
  sizes: OperatorSizes,
): Promise<Figure[]> {
  await using platform = await Platform.start({
    limits: { concurrentSandboxes: noLimit, sandboxes: noLimit, requestsPerSecond: 0 },
    database: { name, location: async () => cluster?.newDatabase() },
    checkAnswers: false,
  });
  const operations = await load(1, sizes.seconds, () => lifeOf(platform));
  const together = await load(clients, sizes.seconds, () => lifeOf(platform));
  const lives = (from: typeof operations) =>
    `${(from.perSecond * statementsOfLife).toFixed(0)} changes/s; a life of ${statementsOfLife} takes ${from.medianMs.toFixed(2)} ms, p99 ${from.p99Ms.toFixed(2)} ms`;
  const { sandboxID } = await platform.createSandbox();
  const first = await platform.store.db
    .selectFrom('sandboxes')
    .selectAll()
    .where('sandbox_id', '=', sandboxID)
    .executeTakeFirstOrThrow();
  await platform.store.db.deleteFrom('sandboxes').execute();
  const listed = await fill(platform, first, sizes.sandboxes);
  // PostgreSQL does this by itself within a minute; until then it guesses how many rows there are.
  await sql`analyze`.execute(platform.store.db);
  const pages = await pagesOf(platform, listed);
  const { socketPath, key } = platform;
  const ask = (paths: string[]) => loadFromOutside({ socketPath, key, paths, clients, seconds: sizes.seconds });
  const read = await ask(listed.map(id => `/sandboxes/${id}`));
  const events = await ask(['/events/sandboxes?limit=100']);
  return [
    { name: `${name}: changes of sandboxes, one after the other`, goal: '', value: lives(operations) },
    { name: `${name}: the same, ${clients} at a time`, goal: '', value: lives(together) },
    {
      name: `${name}: a page of ${pageLimit} of ${listed.length} sandboxes`,
      goal: 'the last as fast as the first',
      summary: summarize(pages),
    },
    { name: `${name}: GET /sandboxes/{id}, ${clients} clients, API alone`, goal: '', value: loadText(read) },
    {
      name: `${name}: GET /events/sandboxes, 100 of them, ${clients} clients`,
      goal: name === 'SQLite' ? '≥ 5,000 a second' : 'half of SQLite’s',
      value: loadText(events),
    },
  ];
}

const statementsOfLife = 5;

/** The changes that the store makes for one sandbox, including events. */
async function lifeOf({ store, team }: Platform): Promise<void> {
  const nowUs = Date.now() * 1000;
  const sandbox = sandboxOf(team.teamId, nowUs);
  await insertSandbox(store.db, sandbox, { concurrentSandboxes: noLimit, sandboxes: noLimit });
  await publishSandbox(store.db, sandbox, { startedAtUs: nowUs, endAtUs: nowUs + 60_000_000 });
  await setSandboxEnd(store.db, sandbox, { endAtUs: nowUs + 90_000_000, onlyLater: true, nowUs });
  await markSandboxForKill(store.db, sandbox, ['running'], nowUs, 'bench');
  await deleteSandbox(store.db, sandbox, ['killing'], { reason: 'request', atUs: nowUs });
}

function sandboxOf(teamId: string, nowUs: number): SandboxRecord {
  return {
    sandboxId: newSandboxId(),
    executionId: newUuid(),
    teamId,
    nodeId: 'node-1',
    state: 'starting',
    templateId: 'none',
    buildId: newUuid(),
    alias: null,
    agentVersion: '0.6.4',
    cpuCount: 2,
    memoryMiB: 1024,
    diskMiB: 5120,
    createdAtUs: nowUs,
    startedAtUs: nowUs,
    endAtUs: nowUs,
    timeoutSeconds: 60,
    secure: true,
    ...defaultOptions,
    metadata: { bench: 'operator' },
    volumeMounts: [],
    kept: null,
    agentUnresponsive: false,
    durability: null,
    nextExecutionId: null,
    nextNodeId: null,
    replicaId: null,
  };
}

type Row = Awaited<ReturnType<ReturnType<Platform['store']['db']['selectFrom']>['execute']>>[number];

/**
 * Rows of running sandboxes, copied from an existing one, far from their end, on a node that nobody asks. Answers their
 * IDs.
 */
async function fill(platform: Platform, like: Row & Record<string, unknown>, count: number): Promise<string[]> {
  const ids: string[] = [];
  const endAtUs = (Date.now() + 3_600_000) * 1000;
  for (let made = 0; made < count; made += 500) {
    const rows = Array.from({ length: Math.min(500, count - made) }, (_, index) => ({
      ...like,
      sandbox_id: newSandboxId(),
      execution_id: newUuid(),
      node_id: 'elsewhere',
      started_at_us: Date.now() * 1000 + made + index,
      end_at_us: endAtUs,
    }));
    ids.push(...rows.map(row => row.sandbox_id));
    await platform.store.db
      .insertInto('sandboxes')
      .values(rows as never)
      .execute();
  }
  return ids;
}

/** Times of all pages. Fails unless they contain every sandbox once. */
async function pagesOf({ socketPath, key }: Platform, wanted: string[]): Promise<number[]> {
  const times: number[] = [];
  const seen = new Set<string>();
  for (let token: string | null = null; ;) {
    const start = performance.now();
    const page = await call(
      socketPath,
      'GET',
      `/v2/sandboxes?limit=${pageLimit}${token === null ? '' : `&nextToken=${token}`}`,
      undefined,
      { 'x-api-key': key },
    );
    times.push(performance.now() - start);
    for (const { sandboxID } of page.body as { sandboxID: string }[]) seen.add(sandboxID);
    token = page.headers.get('x-next-token');
    if (token === null) break;
  }
  if (seen.size !== wanted.length) throw new Error(`the pages held ${seen.size} of ${wanted.length} sandboxes`);
  return times;
}
