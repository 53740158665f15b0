import { join } from 'node:path';
import { percentile } from '../measure/statistics.ts';
import { startBackends, type Way } from './backends.ts';

/** The medians of the rounds: requests per second over 16 kept connections, and the edge's share of nginx's rate. */
type BesideNginx = { nginx: number; edge: number; share: number; nginxP50Ms: number; edgeP50Ms: number };

/** The edge and nginx in turn, before the same backend, so that noise of the machine affects both alike. */
export async function edgeBesideNginx(options: { rounds: number; durationMs: number }): Promise<BesideNginx> {
  if (!Bun.which('nginx')) throw new Error('nginx is not installed');
  await using backends = await startBackends();
  const ways = backends.ways.filter(way => way.name !== 'direct');
  const rates = new Map<string, number[]>();
  const latencies = new Map<string, number[]>();
  const note = (map: Map<string, number[]>, { name }: Way, value: number) =>
    map.set(name, [...(map.get(name) ?? []), value]);
  for (let round = 0; round < options.rounds; round++) {
    for (const way of ways) note(rates, way, (await load(way, 16, options.durationMs)).requestsPerSecond);
    for (const way of ways) note(latencies, way, (await load(way, 1, options.durationMs / 3)).latencyMs.median);
  }
  const middle = (map: Map<string, number[]>, name: string) =>
    percentile(
      (map.get(name) ?? []).toSorted((a, b) => a - b),
      0.5,
    );
  const [nginx, edge] = [middle(rates, 'nginx'), middle(rates, 'edge')];
  return {
    nginx,
    edge,
    share: edge / nginx,
    nginxP50Ms: middle(latencies, 'nginx'),
    edgeP50Ms: middle(latencies, 'edge'),
  };
}

type Load = { requestsPerSecond: number; latencyMs: { median: number } };

async function load({ port, host }: Way, connections: number, durationMs: number): Promise<Load> {
  const options = JSON.stringify({ way: { port, host, tls: false }, connections, durationMs });
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'load.ts'), 'requests', options], {
    stdout: 'pipe',
  });
  // Only load.ts writes it.
  return JSON.parse(await new Response(child.stdout).text()) as Load;
}
