import { mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { agentBesideGo } from './agent/beside-go.ts';
import { measureBuilds } from './builds/builds.ts';
import { edgeBesideNginx } from './edge/beside-nginx.ts';
import { lifecycleFigures } from './lifecycle/lifecycle.ts';
import { commitOf, keepInHistory } from './measure/history.ts';
import { plot } from './measure/plot.ts';
import { operatorFigures } from './operator/operator.ts';
import { sizesOf } from './operator/sizes.ts';
import { alternatives, type Alternative } from './platform/alternatives.ts';
import { clientOf, type Client, type Target } from './platform/client.ts';
import { growth } from './platform/growth.ts';
import { alternativesTable, figuresTable, machineFacts, type Figure, type Plot } from './platform/report.ts';
import { bursts, createLatency, firstCommand, killUntilGone, sustained, warmCommand } from './platform/series.ts';
import { startTarget } from './platform/target.ts';
import { templateServer } from './platform/template-server.ts';

/** Where the table and the plots go. */
const output = join(import.meta.dir, '../docs/performance');
const quick = process.argv.includes('--quick');
const scale = (count: number) => (quick ? Math.ceil(count / 10) : count);
const say = (text: string) => process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
const [load = 0] = loadavg();

const figures: Figure[] = [];
const plots: Plot[] = [];
let others: Alternative[] = [];
let builds: string | undefined;
let agent: string | undefined;

/** A part that fails becomes a row of the table that says so; the others go on. */
async function part(name: string, work: () => Promise<{ figures: Figure[]; plots?: Plot[] }>): Promise<void> {
  say(name);
  try {
    const measured = await work();
    figures.push(...measured.figures);
    plots.push(...(measured.plots ?? []));
  } catch (error) {
    say(`${name} failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    figures.push({
      name,
      goal: '',
      value: `failed: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)}`,
    });
  }
}

async function withTarget(
  options: { poolSize?: number },
  work: (client: Client, target: Target) => Promise<void>,
): Promise<void> {
  await using target = await startTarget(options);
  await work(clientOf(target), target);
}

await part('what a user would pick instead', async () => {
  others = await alternatives(scale(100));
  return { figures: [] };
});
await part('a platform without a pool', async () => {
  await withTarget({ poolSize: 0 }, client =>
    part('creates without a pool', async () => ({
      figures: await createLatency(client, {
        name: 'create, pool empty',
        count: scale(100),
        pauseMs: 0,
        goal: 'p50 ≤ 50 ms',
      }),
    })),
  );
  return { figures: [] };
});
await part('a platform with a pool', async () => {
  await withTarget({}, async (client, target) => {
    await part('creates from the pool', async () => ({
      figures: await createLatency(client, {
        name: 'create, pool warm',
        count: scale(200),
        goal: 'p50 ≤ 5 ms, p99 ≤ 12 ms',
      }),
    }));
    await part('creates from a template with a server', async () => ({
      figures: await templateServer(client, target, scale(50)),
    }));
    await part('what a kill leaves for a moment', async () => ({
      figures: [await killUntilGone(client, target, scale(100))],
    }));
    await part('commands', async () => ({
      figures: [await firstCommand(client, scale(100)), await warmCommand(client, scale(300))],
    }));
    await part('a burst', async () => ({ figures: await bursts(client, 100) }));
    await part('create and kill without pause', () => sustained(client, target, scale(60)));
    await part('many idle sandboxes', () => growth(client, target, quick ? [0, 20] : [0, 100, 300, 500]));
  });
  return { figures: [] };
});
await part('the agent beside one in Go', async () => {
  await using target = await startTarget({ poolSize: 0 });
  agent = await agentBesideGo(target, { rounds: quick ? 1 : 5, scale });
  return { figures: [] };
});
await part('pauses, forks and snapshots', async () => ({ figures: await lifecycleFigures(scale, say) }));
await part('store and API on both databases', async () => ({
  figures: await operatorFigures(sizesOf(process.env, quick ? 0.2 : 1)),
}));
await part('the edge beside nginx', async () => {
  const { nginx, edge, share, nginxP50Ms, edgeP50Ms } = await edgeBesideNginx({
    rounds: quick ? 1 : 5,
    durationMs: quick ? 1000 : 3000,
  });
  const value = `${(share * 100).toFixed(0)} % of nginx: ${edge.toFixed(0)} and ${nginx.toFixed(0)} requests/s; p50 of one client ${edgeP50Ms.toFixed(3)} and ${nginxP50Ms.toFixed(3)} ms`;
  return { figures: [{ name: 'edge, 16 connections that are kept', goal: '≥ 80 % of nginx', value }] };
});

await part('builds of templates', async () => {
  builds = await measureBuilds();
  return { figures: [] };
});

mkdirSync(output, { recursive: true });
for (const { file, ...drawing } of plots)
  if (drawing.lines.some(line => line.points.length > 0)) writeFileSync(join(output, `${file}.svg`), plot(drawing));
const conditions = `${quick ? ', with `--quick`' : ''}, load average at the start ${load.toFixed(1)}`;
const measured = `Measured ${new Date().toISOString().slice(0, 10)} on ${machineFacts()}${conditions}.\n\n`;
const report = `${measured}${figuresTable(figures, others)}\n\n${alternativesTable(others)}\n`;
writeFileSync(join(output, 'table.md'), report);
if (builds !== undefined) writeFileSync(join(output, 'builds.md'), `${measured}${builds}`);
if (agent !== undefined) writeFileSync(join(output, 'agent.md'), `${measured}${agent}`);
if (!quick)
  keepInHistory(join(output, 'history.md'), commitOf(join(import.meta.dir, '..')), `${report}\n${agent ?? ''}`);
process.stdout.write(`${report}\n${builds ?? ''}\n${agent ?? ''}`);
say('done');
