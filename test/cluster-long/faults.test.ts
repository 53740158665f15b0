import { afterAll, beforeAll, setDefaultTimeout } from 'bun:test';
import { postgresPrograms } from '../api/postgres.ts';
import { type Faults, workThrough } from '../cluster/support/clients.ts';
import { type Cluster, controlOf, layersEverywhere, startCluster } from '../cluster/support/cluster.ts';
import { inDirectory } from '../cluster/support/stores.ts';
import { testUnless } from '../support/skip.ts';

// Clients that remember what they were answered, while one fault after another befalls a real cluster and heals. FAULTS
// sets how many, FAULT_SEED which.

setDefaultTimeout(38 * 60_000);
const programs = postgresPrograms();
const kind = inDirectory();
const clusterTest = testUnless(kind.skipped);
const faultsCount = Number(process.env['FAULTS'] ?? 12);
const seed = Number(process.env['FAULT_SEED'] ?? Date.now() % 1_000_000);

let cluster: Cluster;

beforeAll(async () => {
  if (programs)
    cluster = await startCluster(programs, { controls: 2, nodes: 2 }, { ATOLL_ISOLATION_SECONDS: '5' }, kind.start);
});
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await kind.stop();
});

/** The faults, each from its beginning to its end. */
const faults: Faults = {
  'a control process is killed': async random => {
    const control = controlOf(cluster, Math.floor(random() * 2));
    await control.kill9();
    // A window: the other one works alone.
    await Bun.sleep(5_000);
    await control.restart();
  },
  'a control process stands still for longer than it counts as alive': async random => {
    const control = controlOf(cluster, Math.floor(random() * 2));
    control.freeze();
    // A window: the other one takes over what this one has begun.
    await Bun.sleep(20_000);
    control.thaw();
  },
  'a node is killed': async random => {
    const node = cluster.nodes[Math.floor(random() * 2)];
    await node?.kill9();
    await node?.restart();
  },
  'a machine is cut off for a moment': random => cutFor(random, 4_000),
  'a machine is cut off until it is given up': random => cutFor(random, 35_000),
  'the database crashes': () => cluster.database.crash(),
  'the database is away': async () => {
    await cluster.database.stop('fast');
    // A window: nobody can change anything.
    await Bun.sleep(15_000);
    await cluster.database.resume();
  },
};

async function cutFor(random: () => number, ms: number): Promise<void> {
  const node = cluster.nodes[Math.floor(random() * 2)];
  await node?.cut();
  // A window: the machine is alone.
  await Bun.sleep(ms);
  await node?.heal();
}

clusterTest(`nothing that was answered is undone by ${faultsCount} faults (seed ${seed})`, async () => {
  await layersEverywhere(cluster);
  await workThrough(cluster, { seed, folder: kind.folder(), count: faultsCount, faults });
});
