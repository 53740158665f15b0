import { availableMiB, cpuMsOf, familyOf, pssMiBOf } from '../measure/processes.ts';
import { summarize, timeEach } from '../measure/statistics.ts';
import type { Client, Sandbox, Target } from './client.ts';
import type { Figure } from './report.ts';

/** So that the pool, refilled one by one, is full again before the next create. */
const refillPauseMs = 80;
const killAtOnce = 8;

/** Creates one after the other, with a pause in which the pool refills, and kills each outside of the measurement. */
export async function createLatency(client: Client, options: { name: string; count: number; pauseMs?: number; goal: string }): Promise<Figure[]> {
  const creates: number[] = [];
  const kills: number[] = [];
  for (let index = 0; index < options.count; index++) {
    await Bun.sleep(options.pauseMs ?? refillPauseMs);
    const start = performance.now();
    const sandbox = await client.create();
    const created = performance.now();
    await client.kill(sandbox);
    creates.push(created - start);
    kills.push(performance.now() - created);
  }
  return [
    { name: options.name, goal: options.goal, summary: summarize(creates) },
    { name: `${options.name}: kill`, goal: 'p50 ≤ 10 ms to the answer', summary: summarize(kills) },
  ];
}

export async function firstCommand(client: Client, count: number): Promise<Figure> {
  const times: number[] = [];
  for (let index = 0; index < count; index++) {
    await Bun.sleep(refillPauseMs);
    const start = performance.now();
    const sandbox = await client.create();
    await client.run(sandbox, '/bin/true');
    times.push(performance.now() - start);
    await client.kill(sandbox);
  }
  return { name: 'create to the end of a first command', goal: 'p50 ≤ 25 ms', summary: summarize(times) };
}

export async function warmCommand(client: Client, count: number): Promise<Figure> {
  const sandbox = await client.create();
  try {
    await timeEach(20, () => client.run(sandbox, '/bin/true'));
    const times = await timeEach(count, () => client.run(sandbox, '/bin/true'));
    return { name: "commands.run('true'), warm", goal: 'p50 ≤ 3 ms', summary: summarize(times) };
  } finally {
    await client.kill(sandbox);
  }
}

export async function burst(client: Client, count: number): Promise<Figure> {
  const start = performance.now();
  const answers = await Promise.allSettled(Array.from({ length: count }, () => client.create()));
  const totalMs = performance.now() - start;
  const sandboxes = answers.flatMap(answer => (answer.status === 'fulfilled' ? [answer.value] : []));
  await killAll(client, sandboxes);
  return { name: `burst of ${count} creates at once`, goal: 'all succeed, ≤ 1.5 s', value: `${sandboxes.length} of ${count} in ${(totalMs / 1000).toFixed(2)} s` };
}

export async function sustained(client: Client, target: Target, seconds: number): Promise<Figure> {
  const before = pssMiBOf(target.pid);
  const end = performance.now() + seconds * 1000;
  let done = 0;
  const loop = async () => {
    while (performance.now() < end) {
      await client.kill(await client.create());
      done++;
    }
  };
  await Promise.all(Array.from({ length: 4 }, loop));
  const growth = pssMiBOf(target.pid) - before;
  return { name: `create + kill for ${seconds} s`, goal: '≥ 60 per second, no growth', value: `${(done / seconds).toFixed(0)} per second; platform ${growth >= 0 ? '+' : ''}${growth.toFixed(1)} MiB` };
}

/** How memory, latency and idle CPU grow with the number of idle sandboxes. One point for each of `steps`. */
export async function growth(client: Client, target: Target, steps: number[]): Promise<{ figures: Figure[]; points: GrowthPoint[] }> {
  const sandboxes: Sandbox[] = [];
  const points: GrowthPoint[] = [];
  const figures: Figure[] = [];
  const emptyMiB = availableMiB();
  try {
    for (const step of steps) {
      while (sandboxes.length < step) {
        const batch = Math.min(10, step - sandboxes.length);
        sandboxes.push(...(await Promise.all(Array.from({ length: batch }, () => client.create()))));
      }
      await Bun.sleep(3_000); // refills and first-run garbage settle
      points.push(await growthPoint(client, target, step, emptyMiB));
    }
    figures.push(await restart(client, target, sandboxes.length));
  } finally {
    await killAll(client, sandboxes);
  }
  const last = points.at(-1);
  if (last) {
    figures.push(
      { name: `memory per idle sandbox, of ${last.sandboxes}`, goal: '≤ 8 MiB in all', value: `${last.memoryMiBEach.toFixed(1)} MiB` },
      { name: `idle CPU with ${last.sandboxes} sandboxes`, goal: '≤ 3 % of a core', value: `${last.idleCpuPercent.toFixed(1)} %` },
      { name: `API p99 with ${last.sandboxes} sandboxes`, goal: '≤ 50 ms', value: `${last.getP99Ms.toFixed(1)} ms` },
    );
  }
  return { figures, points };
}

export type GrowthPoint = { sandboxes: number; createMs: number; listMs: number; getP99Ms: number; memoryMiBEach: number; idleCpuPercent: number };

async function growthPoint(client: Client, target: Target, sandboxes: number, emptyMiB: number): Promise<GrowthPoint> {
  const family = familyOf(target.pid);
  const idleSeconds = 5;
  const cpuBefore = family.reduce((sum, pid) => sum + cpuMsOf(pid), 0);
  await Bun.sleep(idleSeconds * 1000);
  const cpuMs = family.reduce((sum, pid) => sum + cpuMsOf(pid), 0) - cpuBefore;
  const memoryMiBEach = sandboxes > 0 ? (emptyMiB - availableMiB()) / sandboxes : 0;
  const [create] = await createLatency(client, { name: '', count: 20, goal: '' });
  return {
    sandboxes,
    createMs: create?.summary?.median ?? Number.NaN,
    listMs: summarize(await timeEach(20, async () => (await client.api('GET', '/v2/sandboxes?limit=100')).text())).median,
    getP99Ms: summarize(await timeEach(200, async () => (await client.api('GET', '/v2/sandboxes?limit=1')).text())).p99,
    memoryMiBEach,
    idleCpuPercent: cpuMs / idleSeconds / 10,
  };
}

/** From the start of a crashed platform's successor until it serves with every sandbox adopted. */
async function restart(client: Client, target: Target, running: number): Promise<Figure> {
  const start = performance.now();
  await target.crashAndRestart();
  const seconds = (performance.now() - start) / 1000;
  const adopted = Number((await client.api('GET', '/v2/sandboxes?state=running&limit=1')).headers.get('x-total-running'));
  return { name: `restart after a crash with ${running} sandboxes`, goal: '≤ 5 s, all adopted', value: `${seconds.toFixed(2)} s, ${adopted} adopted` };
}

export async function killAll(client: Client, sandboxes: Sandbox[]): Promise<void> {
  const left = [...sandboxes];
  await Promise.all(Array.from({ length: killAtOnce }, async () => {
    for (let sandbox = left.pop(); sandbox; sandbox = left.pop()) await client.kill(sandbox);
  }));
}
