import { clientOf } from '../platform/client.ts';
import type { Figure } from '../platform/report.ts';
import { startTarget } from '../platform/target.ts';
import { forks, holding, largerBase, pauses, snapshots } from './series.ts';

const sizes = [
  { name: 'idle', memoryMiB: 0, runs: 30, pauseGoal: '', resumeGoal: '' },
  { name: '64 MB', memoryMiB: 64, runs: 30, pauseGoal: 'p50 ≤ 120 ms', resumeGoal: 'p50 ≤ 80 ms' },
  { name: '1 GiB', memoryMiB: 1024, runs: 5, pauseGoal: 'p50 ≤ 0.6 s', resumeGoal: 'p50 ≤ 150 ms' },
];

/** How long pauses, resumes, forks and snapshots take, through the API. `scale` reduces the number of runs. */
export async function lifecycleFigures(
  scale: (count: number) => number,
  say: (text: string) => void,
): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const from of ['frozen', 'disk'] as const) {
    say(`pauses and resumes, ${from}`);
    await using target = await startTarget({ poolSize: 2, env: from === 'disk' ? { ATOLL_FROZEN_SECONDS: '0' } : {} });
    const client = clientOf(target);
    const large = await largerBase(client, 'bench-large', 3072);
    for (const { name, memoryMiB, runs, pauseGoal, resumeGoal } of sizes) {
      const sandbox = await holding(client, memoryMiB, memoryMiB > 512 ? large : 'base');
      const goals = { pauseGoal, resumeGoal: from === 'frozen' ? 'p50 ≤ 10 ms' : resumeGoal };
      figures.push(...(await pauses(client, sandbox, { name, from, count: Math.max(3, scale(runs)), ...goals })));
      await client.kill(sandbox);
    }
    if (from === 'disk') continue;
    say('forks');
    const source = await holding(client, 64);
    for (const { count, runs, goal } of [
      { count: 1, runs: 10, goal: '' },
      { count: 10, runs: 5, goal: 'p50 ≤ 0.4 s in all' },
    ]) {
      figures.push(
        await forks(client, source, { name: `fork of ${count}, 64 MB`, count, runs: Math.max(2, scale(runs)), goal }),
      );
    }
    await client.kill(source);
    const idle = await client.create();
    figures.push(await forks(client, idle, { name: 'fork of 50, idle', count: 50, runs: 1, goal: '≤ 1.2 s in all' }));
    await client.kill(idle);
    say('snapshots');
    figures.push(await snapshots(client, Math.max(2, scale(10))));
  }
  return figures;
}
