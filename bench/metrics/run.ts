import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../../src/api/database/database.ts';
import { silentLog } from '../../src/base/telemetry/log.ts';
import { detectCgroups } from '../../src/node/cgroup/cgroup.ts';
import type { Driver } from '../../src/node/drivers/driver.ts';
import { layoutOf, slotOf, type Slot } from '../../src/node/layout.ts';
import { startHistory, type HistoryParts } from '../../src/node/metrics/history.ts';
import { openSampleFile } from '../../src/node/metrics/sample-file.ts';
import type { RunningRecord } from '../../src/node/sandbox/records/record.ts';
import { startPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { familyOf } from '../measure/processes.ts';
import { summarize, timeEach } from '../measure/statistics.ts';
import { clientOf, type Client, type Sandbox } from '../platform/client.ts';

// Measures what sampling costs a node with many sandboxes, and how long queries take over a sandbox's day and a team's
// week of samples.

const output = join(import.meta.dir, '../../docs/performance');
const sandboxes = process.argv.includes('--quick') ? 50 : 500;
const createsAtOnce = 4;
const watchMs = 30_000;
const queries = 100;
const say = (text: string) => process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
const row = (cells: (string | number)[]) => `| ${cells.join(' | ')} |`;

await using platform = await startPlatform({ ATOLL_POOL_SIZE: '8' });
const client = clientOf({ ...platform.ready, crashAndRestart: async () => {} });
const rows = [...(await queryRows(platform, client)), ...(await samplingRows(platform, client))];
const lines = [
  `Measured ${new Date().toISOString().slice(0, 10)} on ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}.`,
  '',
  row(['What', 'Value']),
  row(['---', '---']),
  ...rows,
];
mkdirSync(output, { recursive: true });
writeFileSync(join(output, 'metrics.md'), `# Metrics\n\n${lines.join('\n')}\n`);
process.stdout.write(`${lines.join('\n')}\n`);

/** Queries through the front door, of a sandbox with a day of samples and of a team with a week. */
async function queryRows(platform: TestPlatform, client: Client): Promise<string[]> {
  say('queries');
  const { sandboxID } = await client.create();
  await client.api('POST', `/sandboxes/${sandboxID}/pause`, { memory: false });
  const now = Math.floor(Date.now() / 1000);
  const perDay = (24 * 3600) / 5;
  const path = join(platform.ready.dataDir, 'node/metrics', sandboxID);
  rmSync(path, { force: true });
  const file = openSampleFile(path, perDay);
  for (let index = 0; index < perDay; index++) {
    file.append({
      atSeconds: now - (perDay - index) * 5,
      cpuCount: 2,
      cpuUsedPct: index % 100,
      memUsed: 1e8 + index * 1024,
      memTotal: 2 ** 30,
      memCache: 1e7,
      diskUsed: 1e8,
      diskTotal: 1e10,
    });
  }
  const teamId = await fillTeam(platform, now);
  const ask = async (name: string, path: string) => {
    const { length } = (await (await client.api('GET', path)).json()) as unknown[];
    const { median, p99 } = summarize(
      await timeEach(queries, async () => (await client.api('GET', path)).arrayBuffer()),
    );
    return row([`${name}: ${length} points, p50 / p99`, `${median.toFixed(1)} / ${p99.toFixed(1)} ms`]);
  };
  return [
    await ask('a day of a sandbox (17,280 samples)', `/sandboxes/${sandboxID}/metrics`),
    await ask('its last hour', `/sandboxes/${sandboxID}/metrics?start=${now - 3600}`),
    await ask('a week of a team (10,080 minutes)', `/teams/${teamId}/metrics`),
  ];
}

async function fillTeam(platform: TestPlatform, now: number): Promise<string> {
  await using store = await openStore({ kind: 'sqlite', path: join(platform.ready.dataDir, 'api/atoll.sqlite') });
  const { team_id } = await store.db.selectFrom('teams').select('team_id').executeTakeFirstOrThrow();
  const first = now - (now % 60) - 7 * 24 * 3600;
  const minutes = Array.from({ length: 7 * 24 * 60 - 1 }, (_, index) => ({
    team_id,
    at_seconds: first + index * 60,
    concurrent: index % 500,
    latest: 1,
    starts: index % 7,
  }));
  for (let at = 0; at < minutes.length; at += 1000)
    await store.db
      .insertInto('team_metrics')
      .values(minutes.slice(at, at + 1000))
      .execute();
  return team_id;
}

/**
 * Repeats the work of the platform's own sampler in this process, for the same sandboxes: this process uses processor
 * time for nothing else.
 */
async function samplingRows(platform: TestPlatform, client: Client): Promise<string[]> {
  say(`${sandboxes} sandboxes`);
  const made: Sandbox[] = [];
  const left = Array.from({ length: sandboxes }, (_, index) => index).values();
  await Promise.all(
    Array.from({ length: createsAtOnce }, async () => {
      for (const _ of left) made.push(await client.create());
    }),
  );
  const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
  try {
    const node = nodeOf(platform, folder);
    const running = node.sandboxes.running().length;
    if (running < sandboxes) throw new Error(`only ${running} run`);
    say('sampling');
    Bun.gc(true);
    const history = startHistory(node, 24);
    await Bun.sleep(6_000); // spread out
    const before = process.cpuUsage();
    await Bun.sleep(watchMs);
    const { user, system } = process.cpuUsage(before);
    history.stop();
    const bytes = readdirSync(folder).reduce((sum, name) => sum + readFileSync(join(folder, name)).length, 0);
    const seconds = (user + system) / 1e6;
    const taken = bytes / 32;
    return [
      row([
        `sampling ${sandboxes} sandboxes, share of one core`,
        `${((seconds / (watchMs / 1000)) * 100).toFixed(2)} % (goal ≤ 1 %)`,
      ]),
      row([
        'processor time for each sample, all included',
        `${((seconds * 1e6) / ((sandboxes * watchMs) / 5000)).toFixed(0)} µs`,
      ]),
      row([
        `samples taken in ${(watchMs + 6_000) / 1000} s`,
        `${taken} of about ${Math.round((sandboxes * (watchMs + 5_000)) / 5000)}`,
      ]),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The part of the running platform's node that a sampler uses. */
function nodeOf(platform: TestPlatform, folder: string): HistoryParts {
  const { dataDir, pid } = platform.ready;
  const installation = Number(readdirSync('/run/atoll').find(number => ownerOf(number) === dataDir));
  const layout = layoutOf(dataDir, join('/run/atoll', String(installation)), installation);
  const records = readdirSync(layout.sandboxes)
    .map(id => join(layout.sandboxes, id, 'record.json'))
    .filter(existsSync)
    .map(path => JSON.parse(readFileSync(path, 'utf8')) as RunningRecord);
  const running = records.filter(record => record.state === 'running');
  const mountsPid = familyOf(pid).find(member =>
    existsSync(`/proc/${member}/root${layout.mounts}/s${running[0]?.slot}/upper`),
  );
  const driver = { cgroupPath: (slot: Slot) => `/atoll${installation}/${slot.name}` } as Driver;
  const sampled = running.map(record => ({
    sandboxId: record.sandboxId,
    record,
    processes: { driver, slot: slotOf(installation, record.slot) },
  }));
  return {
    layout: { ...layout, metrics: folder },
    log: silentLog,
    cgroups: detectCgroups(),
    sandboxes: { running: () => sampled, get: sandboxId => sampled.find(sandbox => sandbox.sandboxId === sandboxId) },
    helper: { mountsPid: mountsPid ?? 0 },
  };
}

function ownerOf(number: string): string | undefined {
  try {
    return readFileSync(join('/run/atoll', number, 'owner'), 'utf8');
  } catch {
    return undefined;
  }
}
