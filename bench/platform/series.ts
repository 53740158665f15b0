import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { platformOf, pssMiBOf, sumOf } from '../measure/processes.ts';
import { summarize, timeEach } from '../measure/statistics.ts';
import type { Client, Sandbox, Target } from './client.ts';
import type { Figure, Plot } from './report.ts';

/** Lets the pool, which refills one by one, be full again before the next create. */
const refillPauseMs = 80;
/** Lets the pool grow before the next burst. */
const growPauseMs = 30_000;
const killAtOnce = 8;
const clientsAtOnce = 4;

/** Creates one after another, with a pause in which the pool refills; killing each is not measured. */
export async function createLatency(
  client: Client,
  options: { name: string; count: number; pauseMs?: number; goal: string },
): Promise<Figure[]> {
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
    { name: options.name, goal: options.goal, alternative: 'crun run', summary: summarize(creates) },
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
    return {
      name: "commands.run('true'), warm",
      goal: 'p50 ≤ 1.5 ms',
      alternative: 'crun exec',
      summary: summarize(times),
    };
  } finally {
    await client.kill(sandbox);
  }
}

/** Creates at once, and as many again once the pool has had time to grow to what the first burst wanted. */
export async function bursts(client: Client, count: number): Promise<Figure[]> {
  const first = await burst(client, count, `burst of ${count} creates at once`);
  await Bun.sleep(growPauseMs);
  return [first, await burst(client, count, `the same again within ten minutes`)];
}

async function burst(client: Client, count: number, name: string): Promise<Figure> {
  const start = performance.now();
  const answers = await Promise.allSettled(Array.from({ length: count }, () => client.create()));
  const totalMs = performance.now() - start;
  const sandboxes = answers.flatMap(answer => (answer.status === 'fulfilled' ? [answer.value] : []));
  await killAll(client, sandboxes);
  return {
    name,
    goal: 'all succeed, ≤ 0.8 s',
    value: `${sandboxes.length} of ${count} in ${(totalMs / 1000).toFixed(2)} s`,
  };
}

/**
 * Creates and kills without a pause for `seconds`, by four clients: how many per second, and how the platform's memory
 * grows.
 */
export async function sustained(
  client: Client,
  target: Target,
  seconds: number,
): Promise<{ figures: Figure[]; plots: Plot[] }> {
  const start = performance.now();
  const passed = () => (performance.now() - start) / 1000;
  const perSecond = Array.from({ length: seconds }, () => 0);
  const memory: { x: number; y: number }[] = [];
  // All of its processes: the one that was started holds only few of the megabytes.
  const memoryNow = () => sumOf(platformOf(target.pid), pssMiBOf);
  const watch = setInterval(() => memory.push({ x: passed(), y: memoryNow() }), 2_000);
  const loop = async () => {
    while (passed() < seconds) {
      await client.kill(await client.create());
      const second = Math.floor(passed());
      if (second < seconds) perSecond[second] = (perSecond[second] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: clientsAtOnce }, loop)).finally(() => clearInterval(watch));
  const rate = perSecond.reduce((sum, count) => sum + count, 0) / seconds;
  const half = perSecond.slice(seconds >> 1);
  const later = half.reduce((sum, count) => sum + count, 0) / half.length;
  // The first quarter is left to the runtime's own compiler.
  const settled = memory[memory.length >> 2]?.y ?? Number.NaN;
  const growthMiB = (memory.at(-1)?.y ?? Number.NaN) - settled;
  return {
    figures: [
      {
        name: `create + kill for ${seconds} s`,
        goal: '≥ 110 per second',
        value: `${rate.toFixed(0)} per second, ${later.toFixed(0)} in the second half`,
      },
      {
        name: `the platform's memory meanwhile`,
        goal: 'no growth',
        value: `${settled.toFixed(0)} MiB, then ${growthMiB >= 0 ? '+' : ''}${growthMiB.toFixed(1)} MiB`,
      },
    ],
    plots: [
      {
        file: 'sustained',
        title: 'Creates and kills without a pause',
        xLabel: 'seconds',
        yLabel: 'per second',
        lines: [{ name: 'create + kill', points: perSecond.map((y, second) => ({ x: second + 1, y })) }],
      },
      {
        file: 'sustained-memory',
        title: 'Memory of the platform meanwhile',
        xLabel: 'seconds',
        yLabel: 'MiB',
        lines: [{ name: 'platform', points: memory }],
      },
    ],
  };
}

/** From the answer to a kill until nothing of the sandbox is left on the host: its folder goes last. */
export async function killUntilGone(client: Client, target: Target, count: number): Promise<Figure> {
  const times: number[] = [];
  for (let index = 0; index < count; index++) {
    await Bun.sleep(refillPauseMs);
    const sandbox = await client.create();
    await client.kill(sandbox);
    const start = performance.now();
    while (existsSync(join(target.dataDir, 'node/sandboxes', sandbox.sandboxID))) await Bun.sleep(1);
    times.push(performance.now() - start);
  }
  return { name: 'kill: from the answer until nothing is left', goal: '≤ 200 ms', summary: summarize(times) };
}

export async function killAll(client: Client, sandboxes: Sandbox[]): Promise<void> {
  const left = [...sandboxes];
  await Promise.all(
    Array.from({ length: killAtOnce }, async () => {
      for (let sandbox = left.pop(); sandbox; sandbox = left.pop()) await client.kill(sandbox);
    }),
  );
}
