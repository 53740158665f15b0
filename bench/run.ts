import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { measureBuilds } from './builds/builds.ts';
import { lifecycleFigures } from './lifecycle/lifecycle.ts';
import { plot } from './measure/plot.ts';
import { alternatives } from './platform/alternatives.ts';
import { clientOf } from './platform/client.ts';
import { alternativesTable, figuresTable, machineFacts, type Figure } from './platform/report.ts';
import { burst, createLatency, firstCommand, growth, sustained, warmCommand } from './platform/series.ts';
import { startTarget } from './platform/target.ts';

/** Where the table and the plots go. */
const output = join(import.meta.dir, '../docs/performance');
const quick = process.argv.includes('--quick');
const scale = (count: number) => (quick ? Math.ceil(count / 10) : count);
const say = (text: string) => process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);

const figures: Figure[] = [];

say('what a user would pick instead');
const others = await alternatives();

say('builds of templates');
const builds = await measureBuilds();

say('creates without a pool');
{
  await using target = await startTarget({ poolSize: 0 });
  figures.push(...(await createLatency(clientOf(target), { name: 'create, pool empty', count: scale(100), pauseMs: 0, goal: 'p50 ≤ 50 ms' })));
}

figures.push(...(await lifecycleFigures(scale, say)));

await using target = await startTarget({ poolSize: 8 });
const client = clientOf(target);
say('creates from the pool');
figures.push(...(await createLatency(client, { name: 'create, pool warm', count: scale(200), goal: 'p50 ≤ 10 ms, p99 ≤ 40 ms' })));
say('commands');
figures.push(await firstCommand(client, scale(100)), await warmCommand(client, scale(300)));
say('a burst');
figures.push(await burst(client, 100));
say('create and kill without pause');
figures.push(await sustained(client, target, scale(60)));
say('many idle sandboxes');
const { figures: idle, points } = await growth(client, target, quick ? [0, 20] : [0, 100, 300, 500]);
figures.push(...idle);

mkdirSync(output, { recursive: true });
const lines = (name: string, pick: (point: (typeof points)[number]) => number) => ({ name, points: points.map(point => ({ x: point.sandboxes, y: pick(point) })) });
writeFileSync(
  join(output, 'latency.svg'),
  plot({ title: 'Latency as sandboxes grow', xLabel: 'sandboxes running', yLabel: 'ms', lines: [lines('create, p50', p => p.createMs), lines('list of 100, p50', p => p.listMs), lines('list of 1, p99', p => p.getP99Ms)] }),
);
writeFileSync(
  join(output, 'memory.svg'),
  plot({ title: 'Memory of each idle sandbox', xLabel: 'sandboxes running', yLabel: 'MiB', lines: [lines('MiB each', p => p.memoryMiBEach)] }),
);
const report = `Measured ${new Date().toISOString().slice(0, 10)} on ${machineFacts()}.\n\n${figuresTable(figures)}\n\n${alternativesTable(others)}\n`;
writeFileSync(join(output, 'table.md'), report);
const buildsReport = `Measured ${new Date().toISOString().slice(0, 10)} on ${machineFacts()}.\n\n${builds}`;
writeFileSync(join(output, 'builds.md'), buildsReport);
process.stdout.write(`${report}\n${buildsReport}`);
