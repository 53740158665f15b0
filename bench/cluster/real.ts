import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Sandbox } from 'e2b';
import {
  allReady,
  type Cluster,
  connectionTo,
  createOn,
  layersEverywhere,
  startCluster,
} from '../../test/cluster/support/cluster.ts';
import { postgresPrograms } from '../../test/api/postgres.ts';
import { startPlatform } from '../../test/support/platform.ts';
import { summarize, timeEach } from '../measure/statistics.ts';
import type { Figure } from '../platform/report.ts';

type Connection = ReturnType<typeof connectionTo>;

/** How often each thing is done. */
type RealSizes = { creates: number; requests: number; moves: number };

const mebibyte = 1 << 20;

/**
 * A cluster of two machines in network namespaces, with a store in a directory, compared with a single machine; both on
 * this host in the same run, measured in turn.
 */
export async function realFigures(sizes: RealSizes, say: (text: string) => void): Promise<Figure[]> {
  const programs = postgresPrograms();
  if (!programs) return [{ name: 'a cluster', goal: '', value: 'not measured: PostgreSQL is not installed' }];
  const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-store-'));
  try {
    // The same pool on all three.
    await using alone = await startPlatform({ ATOLL_POOL_SIZE: '4' });
    await using cluster = await startCluster(
      programs,
      { controls: 1, nodes: 2 },
      { ATOLL_POOL_SIZE: '4', ATOLL_ISOLATION_SECONDS: '600' },
      async () => ({ ATOLL_STORE: folder }),
    );
    await layersEverywhere(cluster);
    const { apiKey, url } = alone.ready;
    const one: Connection = { apiKey, apiUrl: url, sandboxUrl: url, requestTimeoutMs: 240_000 };
    const figures: Figure[] = [];
    for (const [what, work] of [
      ['creates', () => creates(connectionTo(cluster, 0), one, sizes.creates)],
      ['requests through a tunnel', () => requests(connectionTo(cluster, 0), one, sizes.requests)],
      ['resumes elsewhere', () => resumes(cluster)],
      ['moves', () => moves(cluster, sizes.moves)],
    ] as const) {
      say(what);
      figures.push(...(await work()));
    }
    return figures;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function creates(cluster: Connection, alone: Connection, count: number): Promise<Figure[]> {
  const times = { cluster: [] as number[], alone: [] as number[] };
  const one = async (connection: Connection) => {
    const [took = Number.NaN] = await timeEach(1, async () => {
      made = await Sandbox.create('base', connection);
    });
    await made?.kill();
    return took;
  };
  let made: Sandbox | undefined;
  for (let index = 0; index < count; index++) {
    times.cluster.push(await one(cluster));
    times.alone.push(await one(alone));
    await Bun.sleep(100); // for the pools
  }
  return compared('create by the SDK', 'p50 ≤ 5 ms more', times);
}

async function requests(cluster: Connection, alone: Connection, count: number): Promise<Figure[]> {
  await using used = new AsyncDisposableStack();
  const serving = async (connection: Connection) => {
    const sandbox = await Sandbox.create('base', { ...connection, timeoutMs: 3_600_000 });
    used.defer(async () => void (await sandbox.kill()));
    await sandbox.commands.run('mkdir /tmp/www && echo hello > /tmp/www/index.html');
    await sandbox.commands.run('cd /tmp/www && python3 -m http.server 8000', { background: true, timeoutMs: 0 });
    await sandbox.commands.run('until curl -s localhost:8000; do sleep 0.05; done');
    const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '8000' };
    return async () => {
      const answer = await fetch(connection.sandboxUrl, { headers });
      if ((await answer.text()) !== 'hello\n') throw new Error(`the server answered ${answer.status}`);
    };
  };
  const [there, here] = [await serving(cluster), await serving(alone)];
  const times = { cluster: [] as number[], alone: [] as number[] };
  for (let index = 0; index < count; index++) {
    times.cluster.push(...(await timeEach(1, there)));
    times.alone.push(...(await timeEach(1, here)));
  }
  return compared('a request to a server in a sandbox', 'p50 ≤ 1 ms more', times);
}

function compared(name: string, goal: string, times: { cluster: number[]; alone: number[] }): Figure[] {
  const [cluster, alone] = [summarize(times.cluster), summarize(times.alone)];
  return [
    { name: `${name}, one machine alone`, goal: '', summary: alone },
    { name: `${name}, in a cluster`, goal: '', summary: cluster },
    { name: `${name}: what the cluster adds`, goal, value: `${(cluster.median - alone.median).toFixed(2)} ms at p50` },
  ];
}

/** A program that holds this many incompressible bytes, and notes the time every 5 ms. */
const holder = (bytes: number) => `
import os, time
held = bytearray(os.urandom(1 << 20)) * ${Math.round(bytes / mebibyte)}
for at in range(0, len(held), 4096): held[at:at + 8] = at.to_bytes(8, 'little')
open('/tmp/holds', 'w').close()
longest, last = 0.0, time.time()
while True:
    time.sleep(0.005)
    now = time.time()
    longest, last = max(longest, now - last), now
    if os.path.exists('/tmp/ask'):
        os.remove('/tmp/ask')
        open('/tmp/said.part', 'w').write(str(longest))
        os.rename('/tmp/said.part', '/tmp/said')
        longest = 0.0
`;

async function holding(sandbox: Sandbox, bytes: number): Promise<void> {
  await sandbox.files.write('/tmp/hold.py', holder(bytes));
  await sandbox.commands.run('python3 /tmp/hold.py', { background: true, timeoutMs: 0 });
  await sandbox.commands.run('until [ -e /tmp/holds ]; do sleep 0.05; done', { timeoutMs: 120_000 });
  await longestGap(sandbox);
}

/** The longest time in which the program did not run since the last call, ms. */
async function longestGap(sandbox: Sandbox): Promise<number> {
  const ask = 'touch /tmp/ask; until [ -e /tmp/said ]; do sleep 0.02; done; cat /tmp/said; rm /tmp/said';
  return Number((await sandbox.commands.run(ask)).stdout) * 1000;
}

async function resumes(cluster: Cluster): Promise<Figure[]> {
  const figures: Figure[] = [];
  const [one, two] = cluster.nodes;
  if (!one || !two) throw new Error('two machines were started');
  for (const [name, bytes, goal, count] of [
    ['64 MiB', 64 * mebibyte, '≤ 2 s', 5],
    ['768 MiB', 768 * mebibyte, '≤ 8 s', 2],
  ] as const) {
    const sandbox = await createOn(cluster, one, { timeoutMs: 3_600_000 });
    await holding(sandbox, bytes);
    const times: number[] = [];
    for (let index = 0; index < count; index++) {
      const from = await cluster.homeOf(sandbox.sandboxId);
      const answer = await fetch(`${connectionTo(cluster, 0).apiUrl}/sandboxes/${sandbox.sandboxId}/pause`, {
        method: 'POST',
        headers: { 'X-API-Key': connectionTo(cluster, 0).apiKey, 'Content-Type': 'application/json' },
        body: JSON.stringify({ durability: 'cluster' }),
      });
      if (answer.status !== 204) throw new Error(`a pause was answered ${answer.status}: ${await answer.text()}`);
      await cluster.atoll(0, 'node', 'drain', from.nodeId, '--mode', 'pause', '--no-wait');
      times.push(...(await timeEach(1, () => Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 0)))));
      await cluster.atoll(0, 'node', 'uncordon', from.nodeId);
      await allReady(cluster);
      if ((await cluster.homeOf(sandbox.sandboxId)) === from) throw new Error('it was resumed where it was');
    }
    await sandbox.kill();
    figures.push({ name: `a sandbox that holds ${name} resumes on another machine`, goal, summary: summarize(times) });
  }
  return figures;
}

async function moves(cluster: Cluster, count: number): Promise<Figure[]> {
  const [one] = cluster.nodes;
  if (!one) throw new Error('there is no machine');
  const sandbox = await createOn(cluster, one, { timeoutMs: 3_600_000 });
  await holding(sandbox, 64 * mebibyte);
  const times: number[] = [];
  for (let index = 0; index < count; index++) {
    const from = await cluster.homeOf(sandbox.sandboxId);
    const { code, err, out } = await cluster.atoll(0, 'node', 'drain', from.nodeId, '--mode', 'move');
    if (code !== 0) throw new Error(`a drain failed: ${err}${out}`);
    times.push(await longestGap(await Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 0))));
    await cluster.atoll(0, 'node', 'uncordon', from.nodeId);
    await allReady(cluster);
  }
  await sandbox.kill();
  return [
    { name: 'a sandbox that holds 64 MiB stands still while it is moved', goal: '≤ 700 ms', summary: summarize(times) },
  ];
}
