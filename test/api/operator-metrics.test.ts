import { expect, test } from 'bun:test';
import type { Span } from '../../src/base/telemetry/trace.ts';
import { onEachDatabase } from './databases.ts';
import { adminToken, metricsToken, Platform } from './platform.ts';

/** The value of each series, by its name with labels; fails for a malformed line. */
function parseMetrics(text: string): Map<string, number> {
  const series = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('# HELP ') || line.startsWith('# TYPE ')) continue;
    const [, name, value] = /^([a-z_]+(?:\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)+\})?) ([-+0-9.eInfNa]+)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error(`not a sample: ${line}`);
    if (series.has(name)) throw new Error(`twice: ${name}`);
    series.set(name, Number(value.replace('Inf', 'Infinity')));
  }
  return series;
}

async function scrape(platform: Platform): Promise<Map<string, number>> {
  const response = await fetch('http://api/metrics', {
    unix: platform.socketPath,
    headers: { authorization: `Bearer ${metricsToken}` },
  });
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  return parseMetrics(await response.text());
}

onEachDatabase(database => {
  test('operators are told of requests, sandboxes, machines and builds', async () => {
    await using platform = await Platform.start({ database });
    const kept = await platform.createSandbox();
    const gone = await platform.createSandbox();
    await platform.call('DELETE', `/sandboxes/${gone.sandboxID}`);
    await platform.call('POST', `/sandboxes/${kept.sandboxID}/pause`);
    platform.node.before = async call => {
      if (call === 'create') throw new Error('broken');
    };
    await platform.call('POST', '/v2/sandboxes', { templateID: 'base' });
    await platform.call('GET', `/sandboxes/${gone.sandboxID}`);
    await platform.call('GET', '/wp-login.php');
    const series = await scrape(platform);
    const expected: Record<string, number> = {
      'atoll_sandboxes{state="paused"}': 1,
      'atoll_sandboxes{state="running"}': 0,
      'atoll_builds{status="building"}': 0,
      'atoll_http_requests_total{method="POST",route="/v2/sandboxes",status="201"}': 2,
      'atoll_http_requests_total{method="POST",route="/v2/sandboxes",status="500"}': 1,
      'atoll_http_requests_total{method="GET",route="/sandboxes/{sandboxID}",status="404"}': 1,
      'atoll_http_requests_total{method="GET",route="none",status="404"}': 1,
      'atoll_http_request_duration_seconds_count{method="POST",route="/v2/sandboxes"}': 3,
      atoll_http_requests_in_flight: 1,
      'atoll_sandbox_operations_total{operation="create-sandbox",result="ok"}': 2,
      'atoll_sandbox_operations_total{operation="create-sandbox",result="failed"}': 1,
      'atoll_sandbox_operations_total{operation="kill-sandbox",result="ok"}': 1,
      'atoll_sandbox_operations_total{operation="pause-sandbox",result="ok"}': 1,
      'atoll_sandbox_operation_duration_seconds_count{operation="create-sandbox"}': 2,
      'atoll_node_up{node="node-1"}': 1,
      'atoll_node_cpu_used_ratio{node="node-1"}': 0.124,
      'atoll_node_memory_bytes{node="node-1"}': 4 * 1024 ** 3,
      'atoll_node_disk_used_bytes{node="node-1",mountpoint="/",device="/dev/sda1"}': 3 * 1024 ** 3,
      'atoll_node_pool_ready{node="node-1"}': 3,
      'atoll_node_pool_claims_total{node="node-1",result="miss"}': 1,
      'atoll_node_pool_refills_total{node="node-1",result="ok"}': 8,
      'atoll_node_egress_sent_bytes_total{node="node-1"}': 100,
      'atoll_node_egress_denied_total{node="node-1"}': 3,
    };
    expect(Object.fromEntries(Object.keys(expected).map(name => [name, series.get(name)]))).toEqual(expected);
    expect(series.get('atoll_reconciler_runs_total{reconciler="expiry",result="ok"}')).toBeGreaterThan(0);
    expect(series.get('process_resident_memory_bytes')).toBeGreaterThan(1024 ** 2);
    // IDs never become labels.
    expect(
      [...series.keys()].filter(name => name.includes(kept.sandboxID) || name.includes(platform.team.teamId)),
    ).toEqual([]);
  });
});

onEachDatabase(database => {
  test('creates and forks are counted once each, also those that no machine was asked for', async () => {
    await using platform = await Platform.start({ database, limits: { concurrentSandboxes: 4 } });
    const create = (body: object, headers?: Record<string, string>) =>
      platform.call('POST', '/v2/sandboxes', { templateID: 'base', ...body }, headers);
    const { sandboxID } = await platform.createSandbox();
    const forks = await platform.call('POST', `/sandboxes/${sandboxID}/fork`, { count: 2, timeout: 600 });
    expect(forks.body).toHaveLength(2);
    await platform.createSandbox();
    // As many as the team may have: counted one by one, and as the error for one of two forks.
    expect((await create({})).status).toBe(429);
    await platform.call(
      'DELETE',
      `/sandboxes/${(forks.body as { sandbox: { sandboxID: string } }[])[0]?.sandbox.sandboxID}`,
    );
    const more = await platform.call('POST', `/sandboxes/${sandboxID}/fork`, { count: 2, timeout: 600 });
    expect((more.body as object[]).map(fork => Object.keys(fork)[0]).toSorted()).toEqual(['error', 'sandbox']);
    expect((await create({ templateID: 'none-such' })).status).toBe(404);
    expect((await create({ timeout: 1e9 })).status).toBe(400);
    expect((await platform.call('POST', '/sandboxes/inone/fork', {})).status).toBe(404);
    await platform.call('DELETE', `/sandboxes/${sandboxID}`);
    const drained = { 'x-admin-token': adminToken };
    expect((await platform.call('POST', '/nodes/node-1', { status: 'standby' }, drained)).status).toBe(204);
    expect((await create({})).status).toBe(503);
    const series = await scrape(platform);
    const operations = (result: string) =>
      series.get(`atoll_sandbox_operations_total{operation="create-sandbox",result="${result}"}`);
    expect({ ok: operations('ok'), refused: operations('refused'), failed: operations('failed') }).toEqual({
      ...{ ok: 5, refused: 5, failed: 1 },
    });
    const refused = [...series].filter(([name]) => name.startsWith('atoll_sandbox_creates_refused_total'));
    expect(Object.fromEntries(refused.map(([name, count]) => [/reason="(\w+)"/.exec(name)?.[1], count]))).toEqual({
      ...{ rate_limited: 2, not_found: 2, invalid: 1 },
    });
    const node = await platform.call('GET', '/nodes/node-1', undefined, drained);
    expect(node.body).toMatchObject({ createSuccesses: 5, createFails: 0 });
    expect((await platform.call('GET', '/admin/overview', undefined, drained)).body).toMatchObject({
      creates: { succeeded: 5, failed: 1, causes: [{ cause: 'sandbox_no_compatible_node', count: 1 }] },
    });
  });
});

test('strange requests do not make new series', async () => {
  await using platform = await Platform.start();
  const before = (await scrape(platform)).size;
  for (let index = 0; index < 50; index++) await platform.call('GET', `/random-${index}`);
  for (const method of ['BREW', 'PROPFIND', 'SUBSCRIBE']) await platform.call(method, '/sandboxes').catch(() => {});
  const series = await scrape(platform);
  expect(series.get('atoll_http_requests_total{method="GET",route="none",status="404"}')).toBe(50);
  // One more route and status; unknown methods are counted together.
  expect(series.size - before).toBeLessThan(80);
});

test('metrics are for the operator alone', async () => {
  await using platform = await Platform.start();
  const ask = async (headers: Record<string, string>) =>
    (await fetch('http://api/metrics', { unix: platform.socketPath, headers })).status;
  expect(await ask({ 'x-admin-token': adminToken })).toBe(200);
  expect(await ask({ authorization: `Bearer ${metricsToken}` })).toBe(200);
  expect(await ask({})).toBe(401);
  expect(await ask({ 'x-api-key': platform.key })).toBe(401);
  expect(await ask({ authorization: 'Bearer nonsense' })).toBe(401);
  // It gives access to nothing else.
  for (const name of ['x-admin-token', 'x-api-key']) expect(await ask({ [name]: metricsToken })).toBe(401);
  const nodes = await fetch('http://api/nodes', {
    unix: platform.socketPath,
    headers: { authorization: `Bearer ${metricsToken}`, 'x-admin-token': metricsToken },
  });
  expect(nodes.status).toBe(401);
});

test('a request is a trace, the client’s where it has one', async () => {
  const spans: Span[] = [];
  await using platform = await Platform.start({ spans: { record: made => void spans.push(...made), ratio: 1 } });
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const answer = await platform.call(
    'POST',
    '/v2/sandboxes',
    { templateID: 'base' },
    { traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
  );
  expect(answer.headers.get('x-e2b-trace-id')).toBe(traceId);
  const own = spans.filter(span => span.traceId === traceId);
  const steps = ['authenticate', 'template', 'place', 'reserve', 'start', 'publish', 'audit'];
  expect(own.map(span => span.name)).toEqual([...steps, 'POST /v2/sandboxes']);
  const root = own.at(-1);
  expect(root).toMatchObject({
    kind: 'server',
    parentSpanId: '00f067aa0ba902b7',
    attributes: { 'http.route': '/v2/sandboxes', 'http.response.status_code': 201 },
  });
  expect(own.slice(0, -1).every(span => span.parentSpanId === root?.spanId)).toBe(true);
  expect(JSON.stringify(spans)).not.toContain(platform.key);

  const other = await platform.call('GET', '/v2/sandboxes');
  expect(other.headers.get('x-e2b-trace-id')).toMatch(/^[0-9a-f]{32}$/);
  expect(other.headers.get('server-timing')).toBeNull();
});
