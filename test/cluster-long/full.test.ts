import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox, type SandboxOpts } from 'e2b';
import type { NodeInfo } from '../../src/protocol/node.ts';
import { postgresPrograms } from '../api/postgres.ts';
import {
  type Cluster,
  connectionTo,
  controlOf,
  createOn,
  layersEverywhere,
  startCluster,
  twoMachines,
} from '../cluster/support/cluster.ts';
import { counted, startCounter } from '../cluster/support/counter.ts';
import { atRest } from '../cluster/support/invariants.ts';
import { inDirectory } from '../cluster/support/stores.ts';
import { testUnless } from '../support/skip.ts';

// Machines that have promised everything they have, while sandboxes are paused there.

setDefaultTimeout(10 * 60_000);
const programs = postgresPrograms();
const kind = inDirectory();
const clusterTest = testUnless(kind.skipped);
const port = 8000;

let cluster: Cluster;

beforeAll(async () => {
  if (!programs) return;
  // A machine has room for one sandbox that takes all of its processors.
  const settings = { ATOLL_ISOLATION_SECONDS: '600', ATOLL_CPU_OVERCOMMIT: '1' };
  cluster = await startCluster(programs, { controls: 2, nodes: 2 }, settings, kind.start);
});
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await kind.stop();
});

async function pause({ sandboxId }: Sandbox, durability: 'node' | 'cluster'): Promise<void> {
  const answer = await controlOf(cluster, 0).call('POST', `/sandboxes/${sandboxId}/pause`, { durability });
  expect([answer.status, answer.headers.get('X-Pause-Durability')]).toEqual([204, durability]);
}

async function connect(
  { sandboxId }: Sandbox,
  control = 0,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const answer = await controlOf(cluster, control).call('POST', `/sandboxes/${sandboxId}/connect`, { timeout: 3600 });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

/** A request to the server in a sandbox, through an edge. */
function visit({ sandboxId }: Sandbox, control: number): Promise<Response> {
  const { url, domain } = controlOf(cluster, control);
  return fetch(url, { headers: { Host: `${port}-${sandboxId}.${domain}`, Connection: 'close' } });
}

clusterTest(
  'a resume at home waits for room there, by the API and by traffic, and goes elsewhere if it can',
  async () => {
    await layersEverywhere(cluster);
    const [said] = await cluster.query<{ info: string }>('select info_json as info from cluster_nodes');
    const { cpuCount } = JSON.parse(said?.info ?? '') as NodeInfo;
    await cluster.query(`update builds set cpu_count = ${cpuCount} where status = 'ready'`);
    const [home, other] = twoMachines(cluster);
    const lasting: SandboxOpts = { timeoutMs: 3_600_000 };
    const woken = { ...lasting, lifecycle: { onTimeout: 'pause', autoResume: true } } as SandboxOpts;
    // Both of these are paused at home, one after another; then a third one takes the room.
    const kept = await createOn(cluster, home, woken);
    await kept.commands.run(`python3 -m http.server ${port}`, { background: true, timeoutMs: 0 });
    await kept.commands.run(`until curl -s localhost:${port}; do sleep 0.05; done`);
    await pause(kept, 'node');
    const stored = await createOn(cluster, home, lasting);
    const before = await startCounter(stored);
    await pause(stored, 'cluster');
    const taking = await createOn(cluster, home, lasting);
    expect(await cluster.homeOf(taking.sandboxId)).toBe(home);

    const figures = `node ${home.nodeId}: ${cpuCount} of ${cpuCount} CPUs`;
    for (const control of [0, 1]) {
      expect(await connect(kept, control)).toMatchObject({
        status: 503,
        body: { error_code: 'sandbox_capacity_unavailable', message: expect.stringContaining(figures) },
      });
      const visited = await visit(kept, control);
      expect([visited.status, visited.headers.get('Retry-After')]).toEqual([503, '5']);
      expect(await visited.json()).toEqual({
        sandboxId: kept.sandboxId,
        message: expect.stringContaining('no room'),
        code: 503,
      });
    }
    // A sandbox in the store finds room on the other machine.
    expect((await connect(stored)).status).toBe(201);
    expect(await cluster.homeOf(stored.sandboxId)).toBe(other);
    const after = await counted(await Sandbox.connect(stored.sandboxId, connectionTo(cluster, 1)));
    expect(after.pid).toBe(before.pid);
    // If no machine has any, the answer says that of all.
    await pause(stored, 'cluster');
    const last = await createOn(cluster, other, lasting);
    const refused = await connect(stored);
    expect([refused.status, refused.body['error_code']]).toEqual([503, 'sandbox_capacity_unavailable']);
    expect(refused.body['message']).toContain(`node ${other.nodeId}: ${cpuCount} of ${cpuCount} CPUs`);
    expect(refused.body['message']).toContain('none has that much left');
    await atRest(cluster, kind.folder());

    expect(await taking.kill()).toBe(true);
    expect((await visit(kept, 1)).status).toBe(200);
    expect(await cluster.homeOf(kept.sandboxId)).toBe(home);
    expect(await Promise.all([kept, stored, last].map(sandbox => sandbox.kill()))).toEqual([true, true, true]);
    await atRest(cluster, kind.folder());
  },
);
