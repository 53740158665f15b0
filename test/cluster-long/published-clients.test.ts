import { connect, createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox } from 'e2b';
import { postgresPrograms, withoutPostgres } from '../api/postgres.ts';
import {
  type Cluster,
  connectionTo,
  controlOf,
  layersEverywhere,
  nodeViews,
  startCluster,
} from '../cluster/support/cluster.ts';
import { sharedVariable } from '../support/platform.ts';
import { testUnless } from '../support/skip.ts';

// The suites of the published clients, unchanged from a single machine, on two control processes and three machines
// behind a load balancer that only knows TCP.

setDefaultTimeout(900_000);
const programs = postgresPrograms();
const clusterTest = testUnless(withoutPostgres());
const root = join(import.meta.dir, '../..');
const suites = ['commands', 'files', 'sandbox', 'modules', 'network'];

let cluster: Cluster;

beforeAll(async () => {
  if (programs) cluster = await startCluster(programs, { controls: 2, nodes: 3 }, { ATOLL_DOMAIN: 'atoll.localhost' });
});
afterAll(async () => cluster?.[Symbol.asyncDispose]());

/** Gives each connection to the next server. */
async function balance(ports: readonly number[]) {
  const counts = ports.map(() => 0);
  let next = 0;
  const server = createServer({ allowHalfOpen: true }, client => {
    const number = next++ % ports.length;
    counts[number] = (counts[number] ?? 0) + 1;
    const upstream = connect({ host: '127.0.0.1', port: ports[number] ?? 0, allowHalfOpen: true });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
      one.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, counts, [Symbol.dispose]: () => void server.close() };
}

clusterTest('the suites of the published clients pass behind a balancer of connections', async () => {
  await layersEverywhere(cluster);
  using balancer = await balance([0, 1].map(number => Number(new URL(controlOf(cluster, number).url).port)));
  const { apiKey, domain } = controlOf(cluster, 0);
  const ready = { url: balancer.url, apiKey, domain, dataDir: '', building: [], dashboard: null, pid: 0 };
  const env = { ...(process.env as Record<string, string>), [sharedVariable]: JSON.stringify(ready) };
  const files = suites.map(name => join(root, `test/e2e/sdk-${name}.node.ts`));
  const command = ['node', '--import', 'tsx', '--test', '--test-concurrency=1', '--test-reporter=tap', ...files];
  const child = Bun.spawn(command, { cwd: root, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const failed = out.split('\n').filter(line => /^\s*not ok/.test(line));
  expect({ failed, code }, out + err).toEqual({ failed: [], code: 0 });
  const passed = Number(/^# pass (\d+)$/m.exec(out)?.[1]);
  const skipped = /^# skipped (\d+)$/m.exec(out)?.[1];
  process.stderr.write(`${passed} passed, ${skipped} skipped; connections to each: ${balancer.counts.join(', ')}\n`);
  expect(passed).toBeGreaterThan(20);
  // Both were used.
  for (const count of balancer.counts) expect(count).toBeGreaterThan(10);
  // Sandboxes that the suites leave to the end of their platform may be ended by another process than the one that made
  // them.
  const left = Sandbox.list(connectionTo(cluster, 1));
  while (left.hasNext)
    for (const { sandboxId } of await left.nextItems())
      expect(await Sandbox.kill(sandboxId, connectionTo(cluster, 1))).toBe(true);
  expect((await nodeViews(cluster)).map(({ sandboxCount }) => sandboxCount)).toEqual([0, 0, 0]);
});
