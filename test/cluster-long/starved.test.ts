import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox } from 'e2b';
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
import { takeLoopDevices, takeMemory } from '../cluster/support/starve.ts';
import { inDirectory } from '../cluster/support/stores.ts';
import { testUnless } from '../support/skip.ts';

// A machine that has run out of a kernel resource: what runs there goes on, and what can't start there says so.

setDefaultTimeout(10 * 60_000);
const programs = postgresPrograms();
const kind = inDirectory();
const clusterTest = testUnless(kind.skipped);
/** Sandboxes requested while something is missing. */
const asked = 4;
/** What a machine has left of its memory: less than a few sandboxes take. */
const leftBytes = 96 << 20;

let cluster: Cluster;

beforeAll(async () => {
  if (!programs) return;
  const settings = { ATOLL_ISOLATION_SECONDS: '600', ATOLL_POOL_SIZE: '0', ATOLL_CPU_OVERCOMMIT: '64' };
  cluster = await startCluster(programs, { controls: 2, nodes: 2 }, settings, kind.start);
});
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await kind.stop();
});

/** Requests a sandbox: answers the number of its machine, or the refusal. */
async function ask(control: number, metadata: Record<string, string> = {}): Promise<{ made?: string; said: string }> {
  const body = { templateID: 'base', timeout: 3600, metadata };
  const answer = await controlOf(cluster, control).call('POST', '/v2/sandboxes', body);
  const { sandboxID, message = '' } = (await answer.json()) as { sandboxID?: string; message?: string };
  if (sandboxID !== undefined) return { made: sandboxID, said: '' };
  expect([answer.status >= 500, message]).toEqual([true, expect.stringMatching(/\w+ \w+/)]);
  return { said: `${answer.status} ${message}` };
}

const stillThere = async ({ sandboxId }: Sandbox, before: { pid: string; count: number }) => {
  const after = await counted(await Sandbox.connect(sandboxId, connectionTo(cluster, 1)));
  expect([after.pid, after.count > before.count]).toEqual([before.pid, true]);
};

async function killAll(sandboxIds: readonly string[]): Promise<void> {
  for (const sandboxId of sandboxIds) expect(await Sandbox.kill(sandboxId, connectionTo(cluster, 0))).toBe(true);
}

clusterTest('a machine without a free loop device begins nothing, says so, and goes on with what it has', async () => {
  await layersEverywhere(cluster);
  const [starved, other] = twoMachines(cluster);
  const there = await createOn(cluster, starved, { timeoutMs: 3_600_000 });
  const before = await startCounter(there);
  const giveBack = await takeLoopDevices(starved);
  const set = (status: string) => cluster.admin(0, 'POST', `/nodes/${other.nodeId}`, { status });
  await set('standby');
  const refused = await Promise.all(Array.from({ length: asked }, (_, index) => ask(index % 2)));
  process.stderr.write(`without loop devices: ${refused.map(({ said }) => said).join('; ')}\n`);
  // If it was the last machine tried, the answer contains its reason.
  for (const { said } of refused) expect(said).toMatch(/^503 (There is no room|No machine takes) /);
  // Meanwhile another machine makes them, even if this one has more room.
  await set('ready');
  for (let number = 0; number < asked; number++) {
    const { made, said } = await ask(number % 2);
    expect([said, made && (await cluster.homeOf(made))]).toEqual(['', other]);
    await killAll(made === undefined ? [] : [made]);
  }
  await stillThere(there, before);
  await giveBack();
  const after = await createOn(cluster, starved);
  await stillThere(there, before);
  await killAll([after.sandboxId, there.sandboxId]);
  await atRest(cluster, kind.folder());
});

clusterTest('a machine whose memory is used up ends what took it, and loses nothing else', async () => {
  await layersEverywhere(cluster);
  const [starved, other] = twoMachines(cluster);
  const quiet = await createOn(cluster, starved, { timeoutMs: 3_600_000 });
  const before = await startCounter(quiet);
  const greedy = await createOn(cluster, starved, { timeoutMs: 3_600_000 });
  const giveBack = takeMemory(starved, leftBytes);
  await cluster.admin(0, 'POST', `/nodes/${other.nodeId}`, { status: 'standby' });
  const eat = `python3 -c 'held = bytearray(${4 * leftBytes}); held[::4096] = b"x" * len(held[::4096])'`;
  const ate = greedy.commands.run(eat, { timeoutMs: 60_000 }).then(
    () => 'done',
    (error: unknown) => String(error),
  );
  const results = await Promise.all(Array.from({ length: asked }, (_, index) => ask(index % 2)));
  process.stderr.write(`eating ended so: ${await ate}; creates: ${JSON.stringify(results)}\n`);
  expect(await ate).not.toBe('done');
  giveBack();
  await cluster.admin(0, 'POST', `/nodes/${other.nodeId}`, { status: 'ready' });
  await stillThere(quiet, before);
  const after = await createOn(cluster, starved);
  expect((await after.commands.run('echo works')).stdout).toBe('works\n');
  // Sandboxes ended for lack of memory were reported; all others are there to be killed.
  for (const sandboxId of [...results.flatMap(({ made }) => made ?? []), greedy.sandboxId])
    if (!(await Sandbox.kill(sandboxId, connectionTo(cluster, 1)))) {
      const answer = await controlOf(cluster, 0).call('GET', `/events/sandboxes/${sandboxId}`);
      expect(JSON.stringify(await answer.json())).toContain('"kill_reason"');
    }
  await killAll([quiet.sandboxId, after.sandboxId]);
  await atRest(cluster, kind.folder());
});
