import { test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { loadavg, setPriority } from 'node:os';
import { clientOf, type Client, type Sandbox } from '../../bench/platform/client.ts';
import { summarize } from '../../bench/measure/statistics.ts';
import { startPlatform } from '../support/platform.ts';
import { hostilities, type Hostility } from './neighbours/hostilities.ts';
import { runLongOutside } from './support/long-process.ts';
import { atPace } from './support/pace.ts';
import { circumstances, writeSection } from './support/report.ts';

// `npm run prove -- neighbours`: one sandbox does its worst in each of many ways, while ten others and the API go on at
// a measured pace. It fails if one of them gets no answer; the duration of answers is reported, not judged.

const seconds = Number(process.env['PROOF_SECONDS'] ?? 20);
/** Limits the ways to those whose name matches this expression. */
const only = new RegExp(process.env['PROOF_ONLY'] ?? '');
const neighboursCount = 10;
/**
 * Interval between starts of requests of the same kind and client, ms. Short enough that the 99th percentile of a
 * stretch is more than its worst moment.
 */
const paceMs = { exec: 250, request: 100, create: 200, list: 50 };
type Kind = keyof typeof paceMs;
const kinds = Object.keys(paceMs) as Kind[];
/** How long a hostile sandbox has been active before anything is measured, ms. */
const leadMs = 2_000;
const warmUpSeconds = 15;
/** A quiet stretch is measured before this many hostile ones, and at the end. */
const hostileInARow = 5;

type Times = Record<Kind, number[]>;
type Row = { name: string; times: Times };

/** Measures how long ten neighbours and a client of the API wait, over a stretch of time. */
async function measure(client: Client, url: string, neighbours: Sandbox[], forSeconds = seconds): Promise<Times> {
  const until = performance.now() + forSeconds * 1000;
  const reach = async (sandbox: Sandbox) => {
    const answer = await fetch(`${url}/health`, { headers: client.toAgent(sandbox) });
    await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`a request to a neighbour: ${answer.status}`);
  };
  const createAndKill = async () => {
    const startedAt = performance.now();
    const sandbox = await client.create();
    creates.push(performance.now() - startedAt);
    await client.kill(sandbox);
  };
  const creates: number[] = [];
  const [exec, request, list] = await Promise.all([
    Promise.all(neighbours.map(one => atPace(paceMs.exec, until, () => client.run(one, 'true')))),
    Promise.all(neighbours.map(one => atPace(paceMs.request, until, () => reach(one)))),
    atPace(paceMs.list, until, async () => (await client.api('GET', '/v2/sandboxes?limit=50')).json()),
    atPace(paceMs.create, until, createAndKill),
  ]);
  return { exec: exec.flat(), request: request.flat(), create: creates, list };
}

async function measureBeside(
  { command, user }: Hostility,
  client: Client,
  url: string,
  neighbours: Sandbox[],
): Promise<Times> {
  const hostile = await client.create();
  const call = new AbortController();
  const going = runLongOutside({ url, headers: client.toAgent(hostile), command, user, signal: call.signal });
  try {
    // A window for the worst to begin.
    await Bun.sleep(leadMs);
    return await measure(client, url, neighbours);
  } finally {
    await client.kill(hostile);
    call.abort();
    await going;
  }
}

/**
 * Real clients are on other machines: the measuring one takes precedence over everything else here, so that it waits
 * for the platform and sandboxes, and not for its own turn.
 */
function goFirst(): void {
  const niceness = -10;
  setPriority(niceness);
  const ofSession = '/proc/self/autogroup';
  if (existsSync(ofSession)) writeFileSync(ofSession, String(niceness));
}

test(`ten neighbours of one that does its worst in ${hostilities.length} ways`, async () => {
  const startedAt = new Date();
  goFirst();
  await using platform = await startPlatform({ ATOLL_POOL_SIZE: '4' });
  const { url, apiKey, dataDir, pid } = platform.ready;
  const client = clientOf({ url, apiKey, dataDir, pid, crashAndRestart: () => platform.restart() });
  const neighbours = await Promise.all(Array.from({ length: neighboursCount }, () => client.create()));
  // The first time takes a platform and its sandboxes longer: it does not count.
  await measure(client, url, neighbours, warmUpSeconds);
  const quiet: Times = { exec: [], request: [], create: [], list: [] };
  const measureQuiet = async () => {
    const times = await measure(client, url, neighbours);
    for (const kind of kinds) quiet[kind].push(...times[kind]);
    console.log(`quiet: ${p99sOf(times)}`);
  };
  const rows: Row[] = [];
  for (const [index, hostility] of hostilities.filter(({ name }) => only.test(name)).entries()) {
    if (index % hostileInARow === 0) await measureQuiet();
    const times = await measureBeside(hostility, client, url, neighbours);
    rows.push({ name: hostility.name, times });
    console.log(`${hostility.name}: ${p99sOf(times)}`);
  }
  await measureQuiet();
  writeSection('Hostile neighbours', report(quiet, rows, startedAt));
});

const p99 = (times: number[]) => summarize(times).p99;
const p99sOf = (times: Times) => kinds.map(kind => `${kind} ${p99(times[kind]).toFixed(0)} ms`).join(', ');

function report(quiet: Times, rows: Row[], startedAt: Date): string {
  const cell = (times: Times, kind: Kind) =>
    `${p99(times[kind]).toFixed(0)} (${(p99(times[kind]) / p99(quiet[kind])).toFixed(1)})`;
  return `
One sandbox does its worst, one way after the other, for ${seconds} s each. Meanwhile ${neighboursCount} others run \`true\` four times a second and
answer ten requests a second each, sandboxes are created and killed, and lists are asked for. Nobody may go unanswered.
The table has the 99th percentile in ms and, in brackets, its ratio to the quiet stretches before, between and after.

| | |
|---|---|
${circumstances(startedAt)}
| Load at the end | ${loadavg()[0]?.toFixed(1)} |

| The one | command | request | create | list |
|---|---|---|---|---|
| quiet | ${kinds.map(kind => p99(quiet[kind]).toFixed(0)).join(' | ')} |
${rows.map(({ name, times }) => `| ${name} | ${kinds.map(kind => cell(times, kind)).join(' | ')} |`).join('\n')}
`;
}
