import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { cpuMsOf } from '../measure/processes.ts';
import { percentile } from '../measure/statistics.ts';
import { bigFileBytes, startBackends, type Way } from './backends.ts';

// The edge compared with nginx and a direct connection. The ways take turns, so that noise of the machine affects all
// of them alike; each figure is the median over the rounds. `--quick` for a first look.
const quick = process.argv.includes('--quick');
const rounds = quick ? 2 : 3;
const durationMs = quick ? 1000 : 3000;

type Measurement = { value: number; cpuMs: number };
type Row = { name: string; unit: string; cpuUnit: string; byWay: Map<string, Measurement[]> };

await using backends = await startBackends();
const rows: Row[] = [];

await series('latency of one client, p50', 'ms', 'µs/request', backends.ways, false, way => load(way, 1, 'p50'));
await series('16 clients', 'requests/s', 'µs/request', backends.ways, false, way => load(way, 16, 'rate'));
await series('16 clients, p99', 'ms', 'µs/request', backends.ways, false, way => load(way, 16, 'p99'));
await series('256 clients', 'requests/s', 'µs/request', backends.ways, false, way => load(way, 256, 'rate'));
await series('16 clients over TLS', 'requests/s', 'µs/request', backends.ways, true, way => load(way, 16, 'rate'));
await series('download of 1 GiB', 'MB/s', 'ms/GiB', backends.ways, false, way => move('download', way, '/big'));
await series('download of 1 GiB over TLS', 'MB/s', 'ms/GiB', backends.ways, true, way => move('download', way, '/big'));
await series('upload of 1 GiB', 'MB/s', 'ms/GiB', backends.sinkWays, false, way => move('upload', way, '/'));
const text = `Measured ${new Date().toISOString().slice(0, 10)} on ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}, which clients, servers and the proxy share; load ${loadavg()[0]?.toFixed(1)} at the end.\n\n${report()}\n`;
const output = join(import.meta.dir, '../../docs/performance');
mkdirSync(output, { recursive: true });
writeFileSync(join(output, 'edge.md'), `# Traffic into sandboxes\n\n${text}`);
process.stdout.write(text);

type Port = { port: number; host: string; tls: boolean };

async function series(
  name: string,
  unit: string,
  cpuUnit: string,
  ways: Way[],
  tls: boolean,
  measure: (way: Port) => Promise<{ value: number; units: number }>,
): Promise<void> {
  process.stderr.write(`${name}\n`);
  const row: Row = { name, unit, cpuUnit, byWay: new Map() };
  rows.push(row);
  for (let round = 0; round < rounds; round++) {
    for (const way of ways) {
      const port = tls ? way.tlsPort : way.port;
      if (port === null) continue;
      const before = cpuOf(way);
      const { value, units } = await measure({ port, host: way.host, tls });
      const list = row.byWay.get(way.name) ?? [];
      list.push({ value, cpuMs: (cpuOf(way) - before) / units });
      row.byWay.set(way.name, list);
    }
  }
}

function cpuOf(way: Way): number {
  return way.pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0);
}

async function load(
  way: Port,
  connections: number,
  what: 'rate' | 'p50' | 'p99',
): Promise<{ value: number; units: number }> {
  const result = await run('requests', { way, connections, durationMs });
  const { requestsPerSecond, latencyMs } = result;
  const value = what === 'rate' ? requestsPerSecond : what === 'p50' ? latencyMs.median : latencyMs.p99;
  // CPU per request in µs.
  return { value, units: (requestsPerSecond * durationMs) / 1000 / 1000 };
}

async function move(kind: 'download' | 'upload', way: Port, path: string): Promise<{ value: number; units: number }> {
  const result = await run(kind, { way, path, bytes: bigFileBytes });
  return { value: result.megabytesPerSecond, units: 1 };
}

async function run(kind: string, options: object) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'load.ts'), kind, JSON.stringify(options)], {
    stdout: 'pipe',
  });
  const text = await new Response(child.stdout).text();
  return JSON.parse(text);
}

function report(): string {
  const median = (values: number[]) =>
    percentile(
      values.sort((a, b) => a - b),
      0.5,
    );
  const names = ['direct', 'nginx', 'edge'];
  const lines = rows.map(row => {
    const cells = names.map(name => {
      const list = row.byWay.get(name);
      if (list === undefined) return '';
      const value = median(list.map(item => item.value));
      const cpu = median(list.map(item => item.cpuMs));
      return `${short(value)}${name === 'direct' ? '' : ` (${short(cpu)} ${row.cpuUnit})`}`;
    });
    return `| ${row.name}, ${row.unit} | ${cells.join(' | ')} |`;
  });
  return ['| | direct | nginx (CPU) | edge (CPU) |', '|---|---|---|---|', ...lines].join('\n');
}

function short(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(3);
}
