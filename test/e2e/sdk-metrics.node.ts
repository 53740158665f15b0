import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { Sandbox } from 'e2b';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

const cli = join(repository, 'node_modules/@e2b/cli/dist/index.js');
const run = promisify(execFile);

type SpanMessage = { name: string; traceId: string };

/** A collector of traces that accepts everything, or keeps its callers waiting. */
const collector = { spans: [] as SpanMessage[], isStalled: false };
const server = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  if (collector.isStalled) return;
  const message = JSON.parse(Buffer.concat(parts).toString()) as {
    resourceSpans: { scopeSpans: { spans: SpanMessage[] }[] }[];
  };
  collector.spans.push(...message.resourceSpans.flatMap(resource => resource.scopeSpans.flatMap(scope => scope.spans)));
  response.end('{}');
});

let platform: TestPlatform;
let home: string;
before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  home = mkdtempSync(join(tmpdir(), 'atoll-metrics-'));
  platform = await startPlatform({
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  });
  Object.assign(process.env, platform.env);
});
after(async () => {
  server.closeAllConnections();
  server.close();
  rmSync(home, { recursive: true, force: true });
  await platform[Symbol.asyncDispose]();
});

const mebibyte = 1024 ** 2;
const operator = async (path: string) => {
  const token = readFileSync(join(platform.ready.dataDir, 'admin-token'), 'utf8').trim();
  return fetch(new URL(path, platform.ready.url), { headers: { 'X-Admin-Token': token } });
};
const latestOf = (sandbox: Sandbox, isMeant: (metric: Awaited<ReturnType<Sandbox['getMetrics']>>[number]) => boolean) =>
  waitFor('a sample that shows it', async () => (await sandbox.getMetrics()).findLast(isMeant), 30_000);

test('samples say what the sandbox uses, as it would say itself', async () => {
  const before = new Date(Date.now() - 3_600_000);
  const createdMs = Date.now();
  const sandbox = await Sandbox.create();
  try {
    const first = await latestOf(sandbox, () => true);
    const { cpuCount, memoryMB } = await sandbox.getInfo();
    assert.equal(first.cpuCount, cpuCount);
    assert.equal(first.memTotal, memoryMB * mebibyte);
    assert.ok(first.timestamp.getTime() >= createdMs - 1000);
    assert.ok(first.memUsed > 0 && first.memUsed < 64 * mebibyte);
    assert.deepEqual(await sandbox.getMetrics({ start: before, end: new Date(createdMs - 60_000) }), []);

    // A file, memory of a program, and one busy processor.
    await sandbox.commands.run('head -c 200M /dev/zero > /home/user/file; sync');
    await sandbox.commands.run(`python3 -c "x = bytearray(b'x') * (150 << 20)\nwhile True: pass"`, {
      background: true,
    });
    const busy = await latestOf(
      sandbox,
      metric =>
        metric.diskUsed > 200 * mebibyte && metric.memUsed > 150 * mebibyte && metric.cpuUsedPct > 10 / cpuCount,
    );
    const { stdout } = await sandbox.commands.run('df -B1 --output=used,size / | tail -1');
    const [used, size] = stdout.trim().split(/\s+/).map(Number);
    assert.ok(Math.abs(busy.diskUsed - (used ?? 0)) < mebibyte, `${busy.diskUsed} and ${used}`);
    assert.equal(busy.diskTotal, size);
    assert.ok(busy.memUsed < 300 * mebibyte);
    assert.ok(busy.memCache >= 0 && busy.memUsed + busy.memCache <= busy.memTotal);
    assert.ok(busy.cpuUsedPct <= 100);

    const batch = (await (await platform.api('GET', `/sandboxes/metrics?sandbox_ids=${sandbox.sandboxId}`)).json()) as {
      sandboxes: Record<string, { memTotal: number }>;
    };
    assert.equal(batch.sandboxes[sandbox.sandboxId]?.memTotal, first.memTotal);
    const env = {
      PATH: process.env['PATH'],
      HOME: home,
      E2B_API_KEY: platform.ready.apiKey,
      E2B_API_URL: platform.ready.url,
    };
    const shown = await run(process.execPath, [cli, 'sandbox', 'metrics', sandbox.sandboxId], { env, timeout: 60_000 });
    assert.match(shown.stdout, /CPU.*%/);
    assert.match(shown.stdout, /Memory: +\d+ \/ 1024 +MiB \| Disk: +\d+ \/ \d+ MiB/);
  } finally {
    await sandbox.kill();
  }
});

test('samples outlive a crash of the platform, a pause and the sandbox itself; its start is counted', async () => {
  const sandbox = await Sandbox.create();
  const first = await latestOf(sandbox, () => true);
  await platform.kill9();
  await platform.restart();
  const times = async () => (await sandbox.getMetrics()).map(metric => metric.timestamp.getTime());
  assert.equal((await times())[0], first.timestamp.getTime());
  // Sampling goes on with the same sandbox.
  await waitFor('a further sample', async () => (await times()).length > 1, 30_000);
  await sandbox.pause({ keepMemory: false });
  const whenPaused = await times();
  assert.equal(whenPaused[0], first.timestamp.getTime());
  await sandbox.connect();
  await waitFor('a sample after the resume', async () => (await times()).length > whenPaused.length, 30_000);
  assert.ok((await times()).every((time, index, all) => index === 0 || time >= (all[index - 1] ?? 0)));
  await sandbox.kill();
  assert.equal((await times())[0], first.timestamp.getTime());

  const keys = (await (await operator('/admin/teams')).json()) as { teamID?: string; id?: string }[];
  const teamId = keys[0]?.teamID ?? keys[0]?.id;
  await waitFor(
    'the team’s metrics',
    async () => {
      const points = (await (await platform.api('GET', `/teams/${teamId}/metrics`)).json()) as {
        concurrentSandboxes: number;
        sandboxStartRate: number;
      }[];
      return points.some(point => point.concurrentSandboxes >= 1);
    },
    30_000,
  );
});

test('operators see the platform at work, and each request is a trace of its own', async () => {
  const sandbox = await Sandbox.create();
  const denied = await sandbox.commands.run(
    'for i in 1 2 3; do timeout 1 bash -c "echo > /dev/tcp/10.0.0.1/80"; done; true',
  );
  assert.equal(denied.exitCode, 0);
  const traffic = (await (await platform.api('GET', `/sandboxes/${sandbox.sandboxId}/traffic`)).json()) as {
    bytesOut: number;
    denied: number;
  };
  assert.ok(traffic.denied >= 3 && traffic.bytesOut > 0, JSON.stringify(traffic));
  await sandbox.kill();
  const token = readFileSync(join(platform.ready.dataDir, 'metrics-token'), 'utf8').trim();
  const text = await (
    await fetch(new URL('/metrics', platform.ready.url), { headers: { Authorization: `Bearer ${token}` } })
  ).text();
  const value = (name: string) =>
    Number(new RegExp(`^${name.replace(/[{}]/g, '\\$&')} (\\S+)$`, 'm').exec(text)?.[1] ?? NaN);
  assert.ok(value('atoll_sandbox_operations_total{operation="create-sandbox",result="ok"}') >= 1, text);
  assert.ok(Number(/^atoll_node_egress_denied_total\{.*\} (\d+)$/m.exec(text)?.[1]) >= traffic.denied);
  assert.ok(value('atoll_edge_connections{side="client"}') >= 1);
  assert.ok(value('atoll_edge_client_connections_max') > value('atoll_edge_connections{side="client"}'));
  assert.ok(value('process_open_fds') > 2);
  const [node] = (await (await operator('/nodes')).json()) as {
    machineInfo: { cpuArchitecture: string };
    metrics: { memoryUsedBytes: number; memoryTotalBytes: number; disks: { totalBytes: number }[] };
  }[];
  assert.ok(
    node &&
      node.metrics.memoryUsedBytes > 0 &&
      node.metrics.memoryUsedBytes < node.metrics.memoryTotalBytes &&
      (node.metrics.disks[0]?.totalBytes ?? 0) > 0,
  );

  await waitFor(
    'the spans of a create',
    () => collector.spans.some(span => span.name === 'POST /v2/sandboxes'),
    30_000,
  );
  const { traceId } = collector.spans.findLast(span => span.name === 'POST /v2/sandboxes') as SpanMessage;
  const names = collector.spans.filter(span => span.traceId === traceId).map(span => span.name);
  for (const name of ['reserve', 'start', 'root', 'init', 'publish']) assert.ok(names.includes(name), names.join());

  // A collector that hangs must not affect the platform.
  collector.isStalled = true;
  for (let index = 0; index < 100; index++) assert.equal((await platform.api('GET', '/v2/sandboxes')).status, 200);
});
