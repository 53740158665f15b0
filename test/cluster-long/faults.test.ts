import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox } from 'e2b';
import { postgresPrograms } from '../api/postgres.ts';
import { randomOf } from '../api/random.ts';
import {
  allReady,
  type Cluster,
  connectionTo,
  controlOf,
  layersEverywhere,
  startCluster,
} from '../cluster/support/cluster.ts';
import { atRest } from '../cluster/support/invariants.ts';
import { testUnless } from '../support/skip.ts';

// Clients that know what they were answered, while one fault after the other befalls a real cluster and heals. FAULTS
// says how many, FAULT_SEED which.

setDefaultTimeout(38 * 60_000);
const programs = postgresPrograms();
const clusterTest = testUnless(
  programs ? undefined : 'its server is not installed (Debian: apt-get install postgresql)',
);
const faultsCount = Number(process.env['FAULTS'] ?? 12);
const seed = Number(process.env['FAULT_SEED'] ?? Date.now() % 1_000_000);
const clients = 3;

let cluster: Cluster;
const folder = mkdtempSync(join(tmpdir(), 'atoll-faults-'));

beforeAll(async () => {
  if (programs)
    cluster = await startCluster(programs, { controls: 2, nodes: 2 }, { ATOLL_ISOLATION_SECONDS: '5' }, async () => ({
      ATOLL_STORE: folder,
    }));
});
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

type Known = { sandboxId: string; wrote: string };

/** One client: its sandboxes, and what it was answered of them. What was not answered may be either way. */
class Client {
  readonly known = new Map<string, Known>();
  readonly killed = new Set<string>();
  readonly unsure = new Set<string>();
  answered = 0;
  failed = 0;
  readonly #random: () => number;
  readonly #control: number;

  constructor(random: () => number, control: number) {
    this.#random = random;
    this.#control = control;
  }

  /** Does something that a client does. A failure is counted: whether it was due to the fault nobody can tell. */
  async act(): Promise<void> {
    const all = [...this.known.values()];
    const chosen = all[Math.floor(this.#random() * all.length)];
    const dice = this.#random();
    try {
      if (!chosen || (dice < 0.3 && all.length < 4)) await this.#create();
      else if (dice < 0.6) await this.#write(chosen);
      else if (dice < 0.8) await this.#pause(chosen);
      else if (dice < 0.9) await this.#write(chosen);
      else await this.#kill(chosen);
      this.answered++;
    } catch {
      this.failed++;
      // A window: what failed is not asked for again at once.
      await Bun.sleep(200);
    }
  }

  get #connection() {
    // The other one, where the client's own does not answer.
    return {
      ...connectionTo(cluster, this.#random() < 0.8 ? this.#control : 1 - this.#control),
      requestTimeoutMs: 20_000,
    };
  }

  async #create(): Promise<void> {
    const { sandboxId } = await Sandbox.create('base', { ...this.#connection, timeoutMs: 3_600_000 });
    this.known.set(sandboxId, { sandboxId, wrote: '' });
  }

  async #write(known: Known): Promise<void> {
    const sandbox = await Sandbox.connect(known.sandboxId, this.#connection);
    const text = `${known.wrote}x`;
    // On the disk before the answer: a machine that is lost has nothing else.
    await sandbox.files.write('/home/user/text', text);
    known.wrote = text;
  }

  async #pause({ sandboxId }: Known): Promise<void> {
    const body = { durability: this.#random() < 0.5 ? 'cluster' : 'node' };
    const { apiUrl, apiKey } = this.#connection;
    const answer = await fetch(`${apiUrl}/sandboxes/${sandboxId}/pause`, {
      method: 'POST',
      headers: { 'X-API-Key': apiKey, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    });
    if (!answer.ok) throw new Error(await answer.text());
  }

  async #kill({ sandboxId }: Known): Promise<void> {
    this.known.delete(sandboxId);
    this.unsure.add(sandboxId);
    await Sandbox.kill(sandboxId, this.#connection);
    this.unsure.delete(sandboxId);
    this.killed.add(sandboxId);
  }
}

/** The faults, each from its beginning to its end. */
const faults: Record<string, (random: () => number) => Promise<void>> = {
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
  const random = randomOf(seed);
  const all = Array.from({ length: clients }, (_, index) => new Client(randomOf(seed + 1 + index), index % 2));
  let isOver = false;
  const acting = all.map(async client => {
    while (!isOver) await client.act();
  });
  const names = Object.keys(faults);
  try {
    for (let number = 0; number < faultsCount; number++) {
      // Each kind once before any comes again.
      const name = number < names.length ? names[number] : names[Math.floor(random() * names.length)];
      process.stderr.write(`fault ${number + 1} of ${faultsCount}: ${name}\n`);
      await faults[name ?? '']?.(random);
      // A window: clients work while nothing is wrong.
      await Bun.sleep(5_000);
    }
  } finally {
    isOver = true;
    await Promise.all(acting);
  }
  await allReady(cluster);
  await atRest(cluster, folder);
  for (const { known, killed, answered, failed } of all) {
    process.stderr.write(`${answered} answered, ${failed} failed, ${known.size} sandboxes, ${killed.size} killed\n`);
    expect(answered).toBeGreaterThan(faultsCount);
    for (const { sandboxId, wrote } of known.values()) {
      const sandbox = await Sandbox.connect(sandboxId, connectionTo(cluster, 1));
      // A write that was not answered may have come to its end.
      if (wrote !== '') expect([wrote, `${wrote}x`]).toContain(await sandbox.files.read('/home/user/text'));
      expect(await sandbox.kill()).toBe(true);
    }
    for (const sandboxId of killed)
      for (const control of [0, 1])
        await expect(Sandbox.getInfo(sandboxId, connectionTo(cluster, control))).rejects.toThrow('not found');
  }
  await atRest(cluster, folder);
});
