import { summarize } from '../measure/statistics.ts';
import type { Client, Sandbox } from '../platform/client.ts';
import type { Figure } from '../platform/report.ts';
import { killAll } from '../platform/series.ts';

const readyPollMs = 20;
/** Longer than a GiB of memory takes to arrive. */
const settleMs = 2_000;
const filesInSnapshot = 10_000;

/** A sandbox with a program that holds this much memory, every page of it written. */
export async function holding(client: Client, memoryMiB: number, template = 'base'): Promise<Sandbox> {
  const sandbox = (await (
    await client.api('POST', '/v2/sandboxes', { templateID: template, timeout: 3600 })
  ).json()) as Sandbox;
  if (memoryMiB === 0) return sandbox;
  const program = `import os,time; state = os.urandom(1 << 20) * ${memoryMiB}; open('/tmp/held', 'w'); time.sleep(86400)`;
  await client.run(sandbox, '/bin/sh', [
    '-c',
    `setsid python3 -c "${program}" > /dev/null 2>&1 & while [ ! -e /tmp/held ]; do sleep 0.05; done`,
  ]);
  return sandbox;
}

/** Pauses and resumes, one after another; each resume ends with an answer of the sandbox's agent. */
export async function pauses(
  client: Client,
  sandbox: Sandbox,
  options: { name: string; from: 'frozen' | 'disk'; count: number; pauseGoal: string; resumeGoal: string },
): Promise<Figure[]> {
  const { name, from, count, pauseGoal, resumeGoal } = options;
  const paused: number[] = [];
  const resumed: number[] = [];
  for (let run = 0; run < count; run++) {
    const start = performance.now();
    await client.api('POST', `/sandboxes/${sandbox.sandboxID}/pause`, {});
    paused.push(performance.now() - start);
    const again = performance.now();
    await client.api('POST', `/v2/sandboxes/${sandbox.sandboxID}/connect`, { timeout: 3600 });
    resumed.push(performance.now() - again);
    await client.run(sandbox, '/bin/true');
    // A pause waits for memory that has not arrived yet: the measured sandbox must have all of its own.
    await Bun.sleep(settleMs);
  }
  return [
    {
      name: `pause, ${name}, ${from === 'frozen' ? 'left frozen' : 'ended at once'}`,
      goal: pauseGoal,
      summary: summarize(paused),
    },
    {
      name: `resume, ${name}, ${from === 'frozen' ? 'frozen' : 'from disk'}`,
      goal: resumeGoal,
      summary: summarize(resumed),
    },
  ];
}

/** Forks `count` at once, several times; killing them is not measured. */
export async function forks(
  client: Client,
  source: Sandbox,
  options: { name: string; count: number; runs: number; goal: string },
): Promise<Figure> {
  const times: number[] = [];
  for (let run = 0; run < options.runs; run++) {
    const start = performance.now();
    const answer = await client.api('POST', `/sandboxes/${source.sandboxID}/fork`, {
      count: options.count,
      timeout: 3600,
    });
    const results = (await answer.json()) as { sandbox?: Sandbox; error?: { message: string } }[];
    times.push(performance.now() - start);
    const failed = results.find(({ error }) => error);
    await killAll(
      client,
      results.flatMap(({ sandbox }) => sandbox ?? []),
    );
    if (failed) throw new Error(`a fork failed: ${failed.error?.message}`);
  }
  return { name: options.name, goal: options.goal, summary: summarize(times) };
}

/** Snapshots of a sandbox that has written many files. */
export async function snapshots(client: Client, runs: number): Promise<Figure> {
  const sandbox = await client.create();
  try {
    const program = `import os; os.makedirs('/home/user/files')\nfor n in range(${filesInSnapshot}): open(f'/home/user/files/{n}', 'w').write('x' * 1000)`;
    await client.run(sandbox, 'python3', ['-c', program]);
    const times: number[] = [];
    for (let run = 0; run < runs; run++) {
      const start = performance.now();
      const { snapshotID } = (await (
        await client.api('POST', `/sandboxes/${sandbox.sandboxID}/snapshots`, {})
      ).json()) as { snapshotID: string };
      times.push(performance.now() - start);
      await client.api('DELETE', `/templates/${encodeURIComponent(snapshotID)}`);
    }
    return {
      name: `snapshot of a sandbox with ${filesInSnapshot} files of its own`,
      goal: '',
      summary: summarize(times),
    };
  } finally {
    await client.kill(sandbox);
  }
}

/** A template like `base` whose sandboxes have this much memory. */
export async function largerBase(client: Client, name: string, memoryMB: number): Promise<string> {
  const { templateID, buildID } = (await (await client.api('POST', '/v3/templates', { name, memoryMB })).json()) as {
    templateID: string;
    buildID: string;
  };
  await client.api('POST', `/v2/templates/${templateID}/builds/${buildID}`, { fromTemplate: 'base' });
  for (;;) {
    const { status } = (await (
      await client.api('GET', `/templates/${templateID}/builds/${buildID}/status`)
    ).json()) as { status: string };
    if (status === 'ready') return name;
    if (status === 'error') throw new Error(`the template ${name} could not be built`);
    await Bun.sleep(readyPollMs);
  }
}
