import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Template } from 'e2b';
import { plot } from '../../bench/measure/plot.ts';
import { summarize } from '../../bench/measure/statistics.ts';
import { clientOf, type Client, type Sandbox } from '../../bench/platform/client.ts';
import { limitTeams } from '../../bench/platform/team-limits.ts';
import { agentPort } from '../../src/protocol/agent.ts';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { type Connections, keptMax, openConnections } from './load/connections.ts';
import { holdingsNow, type Holdings } from './load/holdings.ts';
import { runLong } from './support/long-process.ts';
import { atPace } from './support/pace.ts';
import { circumstances, writeSection } from './support/report.ts';
import { numberOf } from './support/settings.ts';

// `npm run prove -- load`: as many sandboxes as an installation has room for, most of them idle, a hundred busy, with
// terminals, thousands of connections and builds, for an hour. It fails if anything goes unanswered, or if what the
// platform holds grows; the duration of answers is reported, not judged.

const sandboxCount = numberOf('PROOF_SANDBOXES', 1_000);
const minutes = numberOf('PROOF_MINUTES', 60);
const connectionCount = numberOf('PROOF_CONNECTIONS', Math.min(10_000, keptMax()));
const terminalCount = numberOf('PROOF_TERMINALS', 200);
const buildCount = numberOf('PROOF_BUILDS', 50);
const busyCount = Math.ceil(sandboxCount / 10);
const createsAtOnce = 8;
/** Slots for what is created and killed meanwhile, and for the sandboxes of builds. */
const spare = 16;
/** Interval between starts of work of the same kind, ms. */
const paceMs = { exec: 50, request: 20, create: 1_000, list: 500, connection: 10 };
type Kind = keyof typeof paceMs;
const kinds = Object.keys(paceMs) as Kind[];
/** How much the platform's holdings at the end may exceed those after the first fifth of the time. */
const growthMax = { factor: 1.25, memoryMiB: 64, descriptors: 64 };

type Sample = { minute: number; p50: Record<Kind, number>; p99: Record<Kind, number> } & Holdings;

test(`${sandboxCount} sandboxes for ${minutes} minutes`, async () => {
  const startedAt = new Date();
  await using platform = await startPlatform({ ATOLL_POOL_SIZE: '4' });
  const { url, apiKey, dataDir, pid } = platform.ready;
  await limitTeams({ url, dataDir }, { concurrentSandboxes: sandboxCount + spare });
  const client = clientOf({ url, apiKey, dataDir, pid, crashAndRestart: () => platform.restart() });
  const sandboxes = await createAll(client);
  console.log(`${sandboxes.length} sandboxes after ${((Date.now() - startedAt.getTime()) / 1000).toFixed(0)} s`);
  const busy = sandboxes.slice(0, busyCount);
  const terminals = openTerminals(url, client, busy);
  const request = requestTo(sandboxes.at(-1)!, client, url);
  using connections = await openConnections(Number(new URL(url).port), connectionCount, request);
  const until = performance.now() + minutes * 60_000;
  const scene = { client, url, pid, dataDir, busy, connections };
  const [built, samples] = await Promise.all([buildInARow(platform, until), sampleByMinutes(scene)]);
  expect(terminals.silent()).toBe(0);
  await terminals.end();
  // Every one still exists and still answers.
  for (const sandbox of sandboxes) await client.run(sandbox, 'true');
  writeSection('Load', report(samples, { startedAt, built }));
  drawPlots(samples);
  expectFlat(samples);
});

async function createAll(client: Client): Promise<Sandbox[]> {
  const sandboxes: Sandbox[] = [];
  await Promise.all(
    Array.from({ length: createsAtOnce }, async (_, worker) => {
      for (let made = worker; made < sandboxCount; made += createsAtOnce)
        sandboxes.push(await client.create({ timeout: (minutes + 60) * 60 }));
    }),
  );
  return sandboxes;
}

/** Terminals in which a program writes a line each second, distributed over the busy sandboxes. */
function openTerminals(url: string, client: Client, busy: Sandbox[]) {
  const call = new AbortController();
  const heard = Array.from({ length: terminalCount }, () => 0);
  const pty = { size: { rows: 24, cols: 80 } };
  const running = heard.map((_, index) =>
    runLong({
      ...{ url, user: 'user', pty, signal: call.signal },
      headers: client.toAgent(busy[index % busy.length]!),
      command: 'while sleep 1; do date; done',
      onBytes: () => (heard[index] = Date.now()),
    }),
  );
  return {
    /** Those that were silent for a minute. */
    silent: () => heard.filter(at => Date.now() - at > 60_000).length,
    end: () => {
      call.abort();
      return Promise.all(running);
    },
  };
}

function requestTo(sandbox: Sandbox, client: Client, url: string): string {
  const fields = Object.entries({ ...client.toAgent(sandbox), host: new URL(url).host });
  return `GET /health HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
}

/** Builds one after another, spread over the time. Answers how many there were. */
async function buildInARow({ ready, env }: TestPlatform, until: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-load-'));
  const options = { apiKey: ready.apiKey, apiUrl: ready.url, domain: env['E2B_DOMAIN'] ?? ready.domain };
  let built = 0;
  try {
    await atPace((minutes * 60_000) / buildCount, until, async () => {
      writeFileSync(join(folder, 'file'), `${built}`);
      const template = Template({ fileContextPath: folder })
        .fromTemplate('base')
        .copy('file', '/opt/file')
        .runCmd('cat /opt/file');
      await Template.build(template, `load-${built % 5}`, { ...options, cpuCount: 1, memoryMB: 512 });
      built++;
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return built;
}

type Scene = { client: Client; url: string; pid: number; dataDir: string; busy: Sandbox[]; connections: Connections };

async function sampleByMinutes(scene: Scene): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (let minute = 1; minute <= minutes; minute++) {
    const sample = await minuteOf(minute, scene);
    samples.push(sample);
    console.log(Bun.inspect(sample, { compact: true }));
  }
  return samples;
}

async function minuteOf(minute: number, { client, url, pid, dataDir, busy, connections }: Scene): Promise<Sample> {
  const until = performance.now() + 60_000;
  let turn = 0;
  const next = () => busy[turn++ % busy.length]!;
  const created: number[] = [];
  const work: Record<Kind, () => Promise<unknown>> = {
    exec: () => client.run(next(), 'sh', ['-c', 'seq 1000 > /tmp/file; sort -r /tmp/file | head -n 1']),
    request: async () => {
      const answer = await fetch(`${url}/health`, { headers: client.toAgent(next()) });
      await answer.arrayBuffer();
      if (!answer.ok) throw new Error(`port ${agentPort}: ${answer.status}`);
    },
    create: async () => {
      const start = performance.now();
      const sandbox = await client.create();
      created.push(performance.now() - start);
      await client.kill(sandbox);
    },
    list: async () => (await client.api('GET', '/v2/sandboxes?limit=100')).json(),
    connection: async () => {
      const status = await connections.ask(turn++);
      if (status !== '204') throw new Error(`a kept connection: ${status}`);
    },
  };
  const times = Object.fromEntries(
    await Promise.all(kinds.map(async kind => [kind, await atPace(paceMs[kind], until, work[kind])] as const)),
  ) as Record<Kind, number[]>;
  times.create = created;
  const part = (of: 'median' | 'p99') =>
    Object.fromEntries(kinds.map(kind => [kind, summarize(times[kind])[of]])) as Record<Kind, number>;
  return { minute, p50: part('median'), p99: part('p99'), ...(await holdingsNow(pid, dataDir)) };
}

const fifth = (samples: Sample[]) => Math.max(1, Math.floor(samples.length / 5));
const early = (samples: Sample[]) => samples.slice(0, fifth(samples));
const late = (samples: Sample[]) => samples.slice(-fifth(samples));
const medianOf = (samples: Sample[], figure: (sample: Sample) => number) => summarize(samples.map(figure)).median;

function expectFlat(samples: Sample[]): void {
  for (const figure of ['memoryMiB', 'descriptors'] as const) {
    const [before, after] = [early(samples), late(samples)].map(part => medianOf(part, sample => sample[figure]));
    expect(after).toBeLessThanOrEqual(before! * growthMax.factor + growthMax[figure]);
  }
}

function report(samples: Sample[], { startedAt, built }: { startedAt: Date; built: number }): string {
  const row = (name: string, figure: (sample: Sample) => number, digits = 0) =>
    `| ${name} | ${[early(samples), late(samples)].map(part => medianOf(part, figure).toFixed(digits)).join(' | ')} |`;
  return `
${sandboxCount} sandboxes run for ${minutes} min. ${busyCount} of them run twenty commands a second and answer fifty requests. ${terminalCount} terminals print
a line a second, and ${connectionCount} connections to the edge are kept and used. One sandbox a second is created and killed, and
${built} templates are built one after the other. Clients, sandboxes and platform share the machine. A request without an
answer fails the proof.

The table has medians over the minutes of the first and of the last fifth of the time. Plots:
[latency](performance/load.svg), [what it holds](performance/load-holdings.svg).

| | |
|---|---|
${circumstances(startedAt)}

| | First | Last |
|---|---|---|
${kinds.flatMap(kind => [row(`${kind}, p50, ms`, ({ p50 }) => p50[kind], 1), row(`${kind}, p99, ms`, ({ p99 }) => p99[kind], 1)]).join('\n')}
${row("the platform's processes, MiB", ({ memoryMiB }) => memoryMiB)}
${row('their descriptors', ({ descriptors }) => descriptors)}
${row('the kernel, what it can not give back, MiB', ({ kernelMiB }) => kernelMiB)}
${row('data directory, MiB', ({ diskMiB }) => diskMiB)}
`;
}

function drawPlots(samples: Sample[]): void {
  if (!process.env['PROOF_WRITE']) return;
  const line = (name: string, figure: (sample: Sample) => number) => ({
    name,
    points: samples.map(sample => ({ x: sample.minute, y: figure(sample) })),
  });
  const draw = (file: string, options: Omit<Parameters<typeof plot>[0], 'xLabel'>) =>
    writeFileSync(join(repository, 'docs/performance', `${file}.svg`), plot({ ...options, xLabel: 'minutes' }));
  draw('load', {
    ...{ title: `Latency with ${sandboxCount} sandboxes, p99`, yLabel: 'ms' },
    lines: kinds.map(kind => line(kind, ({ p99 }) => p99[kind])),
  });
  draw('load-holdings', {
    ...{ title: `What the platform holds with ${sandboxCount} sandboxes`, yLabel: 'MiB' },
    lines: [line('its processes', ({ memoryMiB }) => memoryMiB), line('kernel', ({ kernelMiB }) => kernelMiB)],
  });
}
