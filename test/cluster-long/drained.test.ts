import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox } from 'e2b';
import { postgresPrograms } from '../api/postgres.ts';
import { allReady, type Cluster, connectionTo, layersEverywhere, startCluster } from '../cluster/support/cluster.ts';
import { atRest } from '../cluster/support/invariants.ts';
import { startWriter, written } from '../cluster/support/writer.ts';
import { inDirectory } from '../cluster/support/stores.ts';
import { testUnless } from '../support/skip.ts';

// Sandboxes that write files on three machines, each of which is drained by moves in its turn.

setDefaultTimeout(35 * 60_000);
const programs = postgresPrograms();
const kind = inDirectory();
const clusterTest = testUnless(kind.skipped);
const count = Number(process.env['DRAINED_SANDBOXES'] ?? 16);
/** Two machines of two processors have room for 64. */
const cpuOvercommit = 16;
/** Pause between two files of a sandbox: together they write 30 a second, and all files are read after each move. */
const pauseSeconds = Math.max(0.1, count / 30);
/** How many sandboxes are made or examined at a time. */
const atOnce = 6;

let cluster: Cluster;

beforeAll(async () => {
  if (programs)
    cluster = await startCluster(
      programs,
      { controls: 2, nodes: 3 },
      { ATOLL_ISOLATION_SECONDS: '600', ATOLL_CPU_OVERCOMMIT: `${cpuOvercommit}` },
      kind.start,
    );
});
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await kind.stop();
});

async function each<T, R>(things: readonly T[], work: (thing: T, index: number) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let first = 0; first < things.length; first += atOnce)
    results.push(
      ...(await Promise.all(things.slice(first, first + atOnce).map((thing, at) => work(thing, first + at)))),
    );
  return results;
}

clusterTest(`${count} sandboxes write on while their machines are emptied in turn, and none is lost`, async () => {
  await layersEverywhere(cluster);
  // Each gets one processor.
  await cluster.query("update builds set cpu_count = 1 where status = 'ready'");
  const numbers = Array.from({ length: count }, (_, number) => number);
  const made = await each(numbers, number =>
    Sandbox.create('base', { ...connectionTo(cluster, number % 2), timeoutMs: 3_600_000 }),
  );
  let before = await each(made, sandbox => startWriter(sandbox, pauseSeconds));
  for (const node of cluster.nodes) {
    const homes = await each(made, sandbox => cluster.homeOf(sandbox.sandboxId));
    expect(homes.filter(home => home === node).length).toBeGreaterThan(0);
    const drained = await cluster.atoll(0, 'node', 'drain', node.nodeId, '--mode', 'move');
    expect(drained).toMatchObject({ code: 0, err: expect.stringContaining('It is empty') });
    expect((await cluster.atoll(0, 'node', 'uncordon', node.nodeId)).code).toBe(0);
    await allReady(cluster);
    before = await each(made, async ({ sandboxId }, index) => {
      const known = before[index] ?? { pid: '', count: 0 };
      const now = await written(await Sandbox.connect(sandboxId, connectionTo(cluster, index % 2)), known.count);
      expect(now.pid).toBe(known.pid);
      return now;
    });
  }
  await atRest(cluster, kind.folder());
  expect(await each(made, sandbox => sandbox.kill())).toEqual(made.map(() => true));
  await atRest(cluster, kind.folder());
});
