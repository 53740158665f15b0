// `npm run bench -- --compare COMMIT [NAME]`: this checkout compared with another one. Both platforms are up at the
// same time, and each figure (or those whose name contains NAME) is measured in turn on one and the other.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Template } from 'e2b';
import { startPlatform, type TestPlatform } from '../test/support/platform.ts';
import { holding } from './lifecycle/series.ts';
import { intervalOfRatio, summarize } from './measure/statistics.ts';
import { clientOf, type Client, type Sandbox } from './platform/client.ts';

type Side = {
  platform: TestPlatform;
  client: Client;
  sandbox: Sandbox;
  /** A sandbox with `heldMiB` of memory, for pauses. */
  held: Sandbox;
  url: string;
};
/** One run of a measurement on one side; answers its duration, ms. */
type Figure = { name: string; runs: number; once(side: Side, run: number): Promise<number> };

/** How long a pool needs to refill after a create, ms. */
const refillMs = 150;
/** Requests in one run of the edge's figure. */
const requestsPerRun = 200;
const copiedFiles = 300;
const heldMiB = 64;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function createOnce({ client }: Side): Promise<number> {
  let sandbox: Sandbox | undefined;
  const ms = await timed(async () => (sandbox = await client.create()));
  if (sandbox) await client.kill(sandbox);
  await Bun.sleep(refillMs);
  return ms;
}

async function killOnce({ client }: Side): Promise<number> {
  const sandbox = await client.create();
  const ms = await timed(() => client.kill(sandbox));
  await Bun.sleep(refillMs);
  return ms;
}

/** A request through the edge to the agent, as one of many on a kept connection. */
async function requestOnce({ url, client, sandbox }: Side): Promise<number> {
  const headers = client.toAgent(sandbox);
  const ms = await timed(async () => {
    for (let request = 0; request < requestsPerRun; request++)
      await (await fetch(`${url}/health`, { headers })).arrayBuffer();
  });
  return ms / requestsPerRun;
}

async function pauseOnce({ client, held }: Side): Promise<number> {
  const ms = await timed(() => client.api('POST', `/sandboxes/${held.sandboxID}/pause`, {}));
  await client.api('POST', `/v2/sandboxes/${held.sandboxID}/connect`, { timeout: 3600 });
  return ms;
}

/** To the end of the first command. */
async function resumeOnce({ client, held }: Side): Promise<number> {
  await client.api('POST', `/sandboxes/${held.sandboxID}/pause`, {});
  return timed(async () => {
    await client.api('POST', `/v2/sandboxes/${held.sandboxID}/connect`, { timeout: 3600 });
    await client.run(held, '/bin/true');
  });
}

async function restartOnce({ platform, client, sandbox }: Side): Promise<number> {
  await platform.stop();
  return timed(async () => {
    await platform.restart();
    await client.run(sandbox, 'true');
  });
}

/**
 * Builds a template from the base and a folder in which one file has changed, as the SDK does: upload, COPY, finish.
 */
function buildOf(folder: string): Figure['once'] {
  return async ({ platform: { ready, env } }, run) => {
    await writeFile(join(folder, 'files/changed'), `${ready.url} ${run}`);
    const template = Template({ fileContextPath: folder }).fromTemplate('base').copy('files', '/opt/files');
    const options = { apiKey: ready.apiKey, apiUrl: ready.url, domain: env['E2B_DOMAIN'] ?? ready.domain };
    return timed(() => Template.build(template, `compare-${run}`, { ...options, cpuCount: 1, memoryMB: 512 }));
  };
}

const figuresOf = (folder: string): Figure[] => [
  { name: 'create, pool warm', runs: 60, once: createOnce },
  { name: '`true`', runs: 100, once: ({ client, sandbox }) => timed(() => client.run(sandbox, 'true')) },
  { name: 'kill', runs: 40, once: killOnce },
  { name: 'request through the edge', runs: 20, once: requestOnce },
  { name: `pause with memory, ${heldMiB} MB`, runs: 25, once: pauseOnce },
  { name: `resume from disk, ${heldMiB} MB`, runs: 25, once: resumeOnce },
  { name: `build with COPY of ${copiedFiles} files`, runs: 8, once: buildOf(folder) },
  { name: 'restart to the first command', runs: 6, once: restartOnce },
];

async function startSide(program?: string): Promise<Side> {
  // Paused sandboxes resume from the disk.
  const platform = await startPlatform({ ATOLL_POOL_SIZE: '4', ATOLL_FROZEN_SECONDS: '0' }, program);
  const { url, apiKey, dataDir, pid } = platform.ready;
  const client = clientOf({ url, apiKey, dataDir, pid, crashAndRestart: () => platform.restart() });
  return { platform, client, url, sandbox: await client.create(), held: await holding(client, heldMiB) };
}

const milliseconds = (ms: number) => (ms < 10 ? ms.toFixed(2) : ms.toFixed(1));

/** Measures one figure on both sides in turn, and answers its row: the medians, and the interval of their ratio. */
async function rowOf({ name, runs, once }: Figure, here: Side, there: Side): Promise<string> {
  const times = { here: [] as number[], there: [] as number[] };
  // The first run on one side warms files and caches for the other; neither counts.
  for (const side of [here, there]) await once(side, -1);
  for (let run = 0; run < runs; run++) {
    // The order alternates: work that one side leaves behind must not always burden the other.
    for (const first of run % 2 === 0 ? [true, false] : [false, true])
      (first ? times.here : times.there).push(await once(first ? here : there, run));
  }
  const [now, before] = [summarize(times.here).median, summarize(times.there).median];
  const { low, high } = intervalOfRatio(times.here, times.there);
  const verdict = low > 1 ? 'slower' : high < 1 ? 'faster' : 'no difference beyond the noise';
  const range = `${low.toFixed(2)}–${high.toFixed(2)}`;
  return `| ${name} | ${milliseconds(before)} ms | ${milliseconds(now)} ms | ${(now / before).toFixed(2)} | ${range} | ${verdict} |`;
}

/** Measures figures beside the checkout in the folder `other`, and answers a Markdown table. */
async function compareWith(other: string, label: string, named: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-compare-'));
  try {
    await mkdir(join(folder, 'files'));
    for (let file = 0; file < copiedFiles; file++)
      await writeFile(join(folder, `files/${file}`), `${file}\n`.repeat(500));
    const there = await startSide(join(other, 'bin/atoll'));
    await using _there = there.platform;
    const here = await startSide();
    await using _here = here.platform;
    const rows: string[] = [];
    for (const figure of figuresOf(folder).filter(({ name }) => name.includes(named))) {
      rows.push(await rowOf(figure, here, there));
      process.stderr.write(`${rows.at(-1)}\n`);
    }
    const head = `| figure (medians) | ${label} | this checkout | ratio | 95 % of ratios | |\n| --- | --- | --- | --- | --- | --- |`;
    return `${head}\n${rows.join('\n')}\n`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const [other, label, named] = process.argv.slice(2);
  if (!other) throw new Error('usage: bench/compare.ts FOLDER [LABEL [NAME]]');
  process.stdout.write(await compareWith(other, label ?? other, named ?? ''));
}
