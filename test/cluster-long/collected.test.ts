import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox } from 'e2b';
import { postgresPrograms } from '../api/postgres.ts';
import { randomOf } from '../api/random.ts';
import {
  type Cluster,
  connectionTo,
  controlOf,
  layersEverywhere,
  startCluster,
  until,
} from '../cluster/support/cluster.ts';
import { atRest } from '../cluster/support/invariants.ts';
import { inDirectory } from '../cluster/support/stores.ts';
import { testUnless } from '../support/skip.ts';

// Three control processes, which stand still now and then, collect what nobody needs from the store. Meanwhile clients
// pause into it, resume from it, and make and delete snapshots, until some of the paused state was collected.
// OPERATIONS sets the least number of operations, COLLECTED_SEED repeats them.

setDefaultTimeout(38 * 60_000);
const programs = postgresPrograms();
const kind = inDirectory();
const clusterTest = testUnless(kind.skipped);
const operations = Number(process.env['OPERATIONS'] ?? 150);
const seed = Number(process.env['COLLECTED_SEED'] ?? Date.now() % 1_000_000);
const clients = 3;
/** Replaces the hours for which the store keeps what nobody needs. */
const graceSeconds = 20;
/** Pauses that must be collected while clients work: a client that is done before the first proves nothing. */
const collectedMin = 10;

let cluster: Cluster;

beforeAll(async () => {
  if (programs)
    cluster = await startCluster(
      programs,
      { controls: 3, nodes: 2 },
      { ATOLL_ISOLATION_SECONDS: '60', ATOLL_CPU_OVERCOMMIT: '16' },
      kind.start,
    );
});
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await kind.stop();
});

/** Makes whatever has not been touched within the grace look older than everything else. */
const age = () =>
  cluster.query(
    `update blobs set changed_at_us = 1 where state = 'stored'
       and changed_at_us < extract(epoch from clock_timestamp()) * 1e6 - ${graceSeconds * 1e6}`,
  );

/** How many pauses were collected so far. */
async function collectedPauses(): Promise<number> {
  const rows = await cluster.query<{ count: string }>("select count(*) as count from blobs where state = 'gone'");
  return Number(rows[0]?.count);
}

/** A client: whatever it was told is in the store must be there when it asks for it. */
class Client {
  readonly #random: () => number;
  readonly #number: number;
  readonly #paused: string[] = [];
  readonly #snapshots: string[] = [];
  done = 0;

  constructor(number: number) {
    this.#number = number;
    this.#random = randomOf(seed + number);
  }

  async act(): Promise<void> {
    const dice = this.#random();
    if (dice < 0.3 || this.#paused.length + this.#snapshots.length === 0) await this.#pause();
    else if (dice < 0.5) await this.#snapshot();
    else if (dice < 0.75) await this.#resume();
    else await this.#begin();
    this.done++;
  }

  async end(): Promise<void> {
    while (this.#paused.length > 0) await this.#resume();
    while (this.#snapshots.length > 0) await this.#begin(true);
  }

  get #connection() {
    return connectionTo(cluster, (this.#number + Math.floor(this.#random() * 2)) % 3);
  }

  async #made(): Promise<Sandbox> {
    const sandbox = await Sandbox.create('base', { ...this.#connection, timeoutMs: 3_600_000 });
    await sandbox.files.write('/home/user/name', sandbox.sandboxId);
    return sandbox;
  }

  async #pause(): Promise<void> {
    const { sandboxId } = await this.#made();
    const control = controlOf(cluster, this.#number % 3);
    const answer = await control.call('POST', `/sandboxes/${sandboxId}/pause`, { durability: 'cluster' });
    expect([answer.status, answer.ok ? '' : await answer.text()]).toEqual([204, '']);
    this.#paused.push(sandboxId);
  }

  async #resume(): Promise<void> {
    const sandboxId = this.#paused.shift();
    if (sandboxId === undefined) return;
    const sandbox = await Sandbox.connect(sandboxId, this.#connection);
    expect(await sandbox.files.read('/home/user/name')).toBe(sandboxId);
    await sandbox.kill();
  }

  async #snapshot(): Promise<void> {
    const sandbox = await this.#made();
    const { snapshotId } = await sandbox.createSnapshot();
    this.#snapshots.push(`${snapshotId} ${sandbox.sandboxId}`);
    await sandbox.kill();
  }

  /** Starts from a snapshot, and deletes it every other time. */
  async #begin(isLast = this.#random() < 0.5): Promise<void> {
    const [snapshotId = '', name] = (this.#snapshots.shift() ?? '').split(' ');
    if (name === undefined) return;
    const sandbox = await Sandbox.create(snapshotId, this.#connection);
    expect(await sandbox.files.read('/home/user/name')).toBe(name);
    await sandbox.kill();
    if (isLast) await Sandbox.deleteSnapshot(snapshotId, this.#connection);
    else this.#snapshots.push(`${snapshotId} ${name}`);
  }
}

clusterTest(`nothing that is needed is collected in ${operations} operations or more (seed ${seed})`, async () => {
  await layersEverywhere(cluster);
  const random = randomOf(seed);
  const all = Array.from({ length: clients }, (_, number) => new Client(number));
  let isOver = false;
  const faults = (async () => {
    for (let round = 0; !isOver; round++) {
      await age();
      const control = controlOf(cluster, round % 3);
      control.freeze();
      // A window: the others collect meanwhile.
      await Bun.sleep(500 + random() * 4_000);
      control.thaw();
      await Bun.sleep(2_000);
    }
  })();
  try {
    await Promise.all(
      all.map(async client => {
        while (client.done * clients < operations || (await collectedPauses()) < collectedMin) await client.act();
        await client.end();
      }),
    );
  } finally {
    isOver = true;
    await faults;
  }
  const done = all.reduce((sum, client) => sum + client.done, 0);
  process.stderr.write(`${await collectedPauses()} pauses were collected during ${done} operations\n`);
  await until('what nobody needs is collected', async () => {
    await age();
    const left = await cluster.query("select 1 from blobs where kind in ('pause', 'snapshot') and state = 'stored'");
    return left.length === 0;
  });
  // What is always needed is still there.
  const last = await Sandbox.create('base', connectionTo(cluster, 0));
  expect(await last.kill()).toBe(true);
  await atRest(cluster, kind.folder());
});
