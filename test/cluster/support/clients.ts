import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'bun:test';
import { Sandbox } from 'e2b';
import { randomOf } from '../../api/random.ts';
import { allReady, type Cluster, connectionTo } from './cluster.ts';
import { atRest } from './invariants.ts';

const clients = 3;

/** What can happen to a cluster, by name: each fault from its beginning to its end. */
export type Faults = Record<string, (random: () => number) => Promise<void>>;

type Known = { sandboxId: string; wrote: string };

/** One client: its sandboxes, and the answers it got about them. An unanswered request may have had either outcome. */
class Client {
  readonly known = new Map<string, Known>();
  readonly killed = new Set<string>();
  readonly unsure = new Set<string>();
  answered = 0;
  failed = 0;
  readonly #cluster: Cluster;
  readonly #random: () => number;
  readonly #control: number;

  constructor(cluster: Cluster, random: () => number, control: number) {
    this.#cluster = cluster;
    this.#random = random;
    this.#control = control;
  }

  /** Does one thing that a client does. A failure is counted: nobody can tell whether the fault caused it. */
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
    // Uses another one now and then: the client's own may not answer.
    const count = this.#cluster.controls.length;
    return {
      ...connectionTo(this.#cluster, this.#random() < 0.8 ? this.#control : (this.#control + 1) % count),
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
    // On the disk before the answer: nothing else remains of a lost machine.
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

/**
 * Lets clients work that remember their answers, while one fault after another befalls the cluster and heals: each kind
 * once before any repeats. Then the answers must still hold, and so must the invariants. `folder`: that of a store in a
 * directory.
 */
export async function workThrough(
  cluster: Cluster,
  { seed, folder, count, faults }: { seed: number; folder: string; count: number; faults: Faults },
): Promise<void> {
  const random = randomOf(seed);
  const all = Array.from(
    { length: clients },
    (_, index) => new Client(cluster, randomOf(seed + 1 + index), index % cluster.controls.length),
  );
  let isOver = false;
  const acting = all.map(async client => {
    while (!isOver) await client.act();
  });
  const names = Object.keys(faults);
  try {
    for (let number = 0; number < count; number++) {
      const name = number < names.length ? names[number] : names[Math.floor(random() * names.length)];
      process.stderr.write(`fault ${number + 1} of ${count}: ${name}\n`);
      await faults[name ?? '']?.(random);
      // A window: clients work while nothing is wrong.
      await Bun.sleep(5_000);
    }
  } finally {
    isOver = true;
    await Promise.all(acting);
  }
  try {
    await allReady(cluster);
    await atRest(cluster, folder);
    for (const client of all) {
      expect(client.answered).toBeGreaterThan(count);
      await stillHolds(cluster, client);
    }
    await atRest(cluster, folder);
  } catch (error) {
    keepLogs(cluster);
    throw error;
  }
}

/** Keeps the processes' logs, for finding the reason of a failure. */
export function keepLogs({ controls, nodes }: Cluster): void {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-faults-'));
  for (const [number, control] of controls.entries())
    writeFileSync(join(folder, `control${number}.log`), control.log());
  for (const [number, node] of nodes.entries()) writeFileSync(join(folder, `node${number}.log`), node.log());
  process.stderr.write(`the logs are in ${folder}\n`);
}

/** What a client wrote is there, and what it has killed is not. */
async function stillHolds(cluster: Cluster, { known, killed, answered, failed }: Client): Promise<void> {
  process.stderr.write(`${answered} answered, ${failed} failed, ${known.size} sandboxes, ${killed.size} killed\n`);
  for (const { sandboxId, wrote } of known.values()) {
    const sandbox = await Sandbox.connect(sandboxId, connectionTo(cluster, 1));
    // An unanswered write may have succeeded.
    if (wrote !== '') expect([wrote, `${wrote}x`]).toContain(await sandbox.files.read('/home/user/text'));
    expect(await sandbox.kill()).toBe(true);
  }
  for (const sandboxId of killed)
    for (const control of cluster.controls.keys())
      await expect(Sandbox.getInfo(sandboxId, connectionTo(cluster, control))).rejects.toThrow('not found');
}
