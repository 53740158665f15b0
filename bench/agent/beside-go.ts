import { mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { envelope } from '../../test/agent/support/rpc.ts';
import { groupCpuMsOf } from '../measure/processes.ts';
import { summarize } from '../measure/statistics.ts';
import { clientOf, type Client, type Sandbox, type Target } from '../platform/client.ts';
import { machineFacts } from '../platform/report.ts';
import { startTarget } from '../platform/target.ts';
import { load, requestBytes } from './load.ts';
import { privateMiBOf } from './memory.ts';
import { curl, makeSparseFile } from './work.ts';

// The agent compared with a plain agent in Go that has the same interface (bench/agent/go), in the same sandbox,
// through the same edge, in turn: `bun bench/agent/beside-go.ts [--quick] [NAME]` writes a table, or only the rows
// whose name contains NAME.

const goPort = 49_984;
const downloadBytes = 256 << 20;
const uploadBytes = 150e6;
/** Rest before memory is measured, ms. */
const restMs = 8000;

/** One of the two agents, as the bench reaches it. */
type Side = { name: string; headers: Record<string, string>; pid: number };
/** A figure of one side; `better` says which direction is better. */
type Job = { name: string; unit: string; better: 'more' | 'less'; goal: string; once(side: Side): Promise<number> };

/** Builds the program; undefined if the machine has no Go. */
function buildBaseline(folder: string): string | undefined {
  if (!Bun.which('go')) return undefined;
  const program = join(folder, 'baseline');
  const built = Bun.spawnSync(['go', 'build', '-trimpath', '-ldflags=-s -w', '-o', program, '.'], {
    cwd: join(import.meta.dir, 'go'),
    env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod' },
    stderr: 'pipe',
  });
  if (built.exitCode !== 0) throw new Error(`go build: ${built.stderr.toString().trim()}`);
  return program;
}

async function startBaseline(client: Client, sandbox: Sandbox, url: string, program: string): Promise<Side[]> {
  const path = '/var/tmp/baseline';
  const headers = client.toAgent(sandbox);
  const uploaded = await fetch(`${url}/files?path=${path}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/octet-stream' },
    body: Bun.file(program),
  });
  if (!uploaded.ok) throw new Error(`upload: ${uploaded.status} ${await uploaded.text()}`);
  await client.run(sandbox, '/bin/chmod', ['0755', path]);
  await client.run(sandbox, '/bin/sh', ['-c', `setsid ${path} ${goPort} </dev/null >/dev/null 2>&1 &`]);
  const toGo = { ...headers, 'e2b-sandbox-port': String(goPort) };
  for (const deadline = Date.now() + 10_000; ; await Bun.sleep(20)) {
    const answer = await fetch(`${url}/health`, { headers: toGo });
    if (answer.status === 204) break;
    if (Date.now() > deadline) throw new Error(`the baseline does not serve: ${answer.status}`);
  }
  const go = processOf('baseline', () => true);
  const namespace = readlinkSync(`/proc/${go}/ns/pid`);
  const agent = processOf('agent', pid => readlinkSync(`/proc/${pid}/ns/pid`) === namespace);
  return [
    { name: 'agent', headers, pid: agent },
    { name: 'Go', headers: toGo, pid: go },
  ];
}

/** The newest process on the host with this name. */
function processOf(name: string, matches: (pid: number) => boolean): number {
  const pids = readdirSync('/proc').filter(entry => /^\d+$/.test(entry));
  const found = pids.map(Number).filter(pid => {
    try {
      return readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === name && matches(pid);
    } catch {
      return false; // ended meanwhile
    }
  });
  const newest = Math.max(...found);
  if (!Number.isFinite(newest)) throw new Error(`there is no process '${name}'`);
  return newest;
}

const startPath = '/process.Process/Start';
const streamType = 'application/connect+json';

/** A request for the stream of a program's output, for curl and as bytes. */
const programBody = (cmd: string, args: string[] = []) => envelope({ process: { cmd, args }, stdin: false });

const headerArguments = (headers: Record<string, string>) =>
  Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]);

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1000;
}

function startJobs(url: string, scale: (count: number) => number): Job[] {
  const { port } = new URL(url);
  const startTrue = ({ headers }: Side, connections: number, count: number) =>
    load(
      Number(port),
      requestBytes(Number(port), startPath, streamType, programBody('/bin/true'), headers),
      connections,
      count,
    );
  return [
    {
      name: 'start of `true`, one at a time',
      unit: 'ms',
      better: 'less',
      goal: '≤ 1.5 ms',
      once: async side => (await startTrue(side, 1, scale(300))).latency.median,
    },
    {
      name: 'processes started, 16 at once',
      unit: 'per second',
      better: 'more',
      goal: '≥ 1.5 × Go',
      once: async side => (await startTrue(side, 16, scale(150))).perSecond,
    },
    {
      name: 'the same, processor time inside of the sandbox',
      unit: 'ms each',
      better: 'less',
      goal: '',
      once: async side => {
        const before = groupCpuMsOf(side.pid);
        await startTrue(side, 16, scale(150));
        return (groupCpuMsOf(side.pid) - before) / (16 * scale(150));
      },
    },
  ];
}

function byteJobs(url: string, folder: string): Job[] {
  const local = makeSparseFile(join(folder, 'upload'), uploadBytes);
  const quiet = ['-o', '/dev/null'];
  return [
    {
      name: 'download of 256 MiB',
      unit: 'GB/s',
      better: 'more',
      goal: 'ahead',
      once: async ({ headers }) =>
        downloadBytes /
        1e9 /
        (await seconds(() => curl([...headerArguments(headers), ...quiet, `${url}/files?path=/var/tmp/big`]))),
    },
    {
      name: 'upload of 150 MB',
      unit: 'GB/s',
      better: 'more',
      goal: 'ahead',
      once: async ({ headers }) => {
        const raw = ['--request', 'POST', '--header', 'content-type: application/octet-stream', '--upload-file', local];
        const work = () => curl([...headerArguments(headers), ...raw, ...quiet, `${url}/files?path=/var/tmp/up`]);
        return uploadBytes / 1e9 / (await seconds(work));
      },
    },
    {
      name: '`cat` of 256 MiB through the stream of a process',
      unit: 'GB/s',
      better: 'more',
      goal: '≥ 0.5 GB/s',
      once: async ({ headers }) => {
        const body = join(folder, 'cat');
        await Bun.write(body, programBody('/bin/cat', ['/var/tmp/big']));
        const post = ['--header', `content-type: ${streamType}`, '--data-binary', `@${body}`];
        const work = () => curl([...headerArguments(headers), ...post, ...quiet, `${url}${startPath}`]);
        return downloadBytes / 1e9 / (await seconds(work));
      },
    },
  ];
}

const number = (value: number) => (value < 10 ? value.toFixed(2) : value.toFixed(0));

function rowOf(
  { name, unit, better, goal }: Pick<Job, 'name' | 'unit' | 'better' | 'goal'>,
  agent: number,
  go: number,
) {
  const ratio = better === 'more' ? agent / go : go / agent;
  const row = `| ${name}, ${unit} | ${number(agent)} | ${number(go)} | ${ratio.toFixed(2)} × | ${goal} |`;
  process.stderr.write(`${row}\n`);
  return row;
}

/**
 * Measures both in turn, and answers a Markdown table whose ratios are above 1 where the agent is ahead; undefined if
 * the machine has no Go.
 */
export async function agentBesideGo(
  target: Target,
  options: { rounds: number; scale: (count: number) => number; named?: string },
) {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-go-'));
  const client = clientOf(target);
  const sandbox = await client.create();
  try {
    const program = buildBaseline(folder);
    if (program === undefined) return undefined;
    const sides = await startBaseline(client, sandbox, target.url, program);
    await client.run(sandbox, '/bin/sh', ['-c', `head -c ${downloadBytes} /dev/zero >/var/tmp/big`]);
    const rows: string[] = [];
    const median = (values: number[]) => summarize(values).median;
    const jobs = [...startJobs(target.url, options.scale), ...byteJobs(target.url, folder)];
    for (const job of jobs.filter(({ name }) => name.includes(options.named ?? ''))) {
      const measured = sides.map((): number[] => []);
      for (const side of sides) await job.once(side);
      for (let round = 0; round < options.rounds; round++)
        // The order alternates: work that one side leaves behind must not always burden the other.
        for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) {
          const side = sides[index];
          if (side) measured[index]?.push(await job.once(side));
        }
      rows.push(rowOf(job, median(measured[0] ?? []), median(measured[1] ?? [])));
    }
    await Bun.sleep(restMs);
    const memory = {
      name: `private memory ${restMs / 1000} s after that`,
      unit: 'MiB',
      better: 'less',
      goal: '≤ 8 MiB',
    } as const;
    rows.push(rowOf(memory, privateMiBOf(sides[0]?.pid ?? 0), privateMiBOf(sides[1]?.pid ?? 0)));
    return `| Figure | Agent | Go | Ahead by | Goal |\n|---|---|---|---|---|\n${rows.join('\n')}\n`;
  } finally {
    await client.kill(sandbox);
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const quick = process.argv.includes('--quick');
  await using target = await startTarget({ poolSize: 0 });
  const table = await agentBesideGo(target, {
    rounds: quick ? 2 : 5,
    named: process.argv.slice(2).find(word => word !== '--quick') ?? '',
    scale: count => (quick ? Math.ceil(count / 5) : count),
  });
  process.stdout.write(`Measured on ${machineFacts()}.\n\n${table ?? 'not measured: there is no Go\n'}`);
}
