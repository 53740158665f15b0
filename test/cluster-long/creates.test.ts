import { expect, setDefaultTimeout } from 'bun:test';
import { occupyingStates } from '../../src/protocol/state.ts';
import { postgresPrograms, withoutPostgres } from '../api/postgres.ts';
import { type FakeCluster, startFakeCluster } from '../api/support/fake-cluster.ts';
import { testUnless } from '../support/skip.ts';

// Many creates per minute on three control processes, at the limits of the team and of the machines, which only record
// what they are told. CREATES_MINUTES sets the duration.

const minutes = Number(process.env['CREATES_MINUTES'] ?? 1);
setDefaultTimeout((2 * minutes + 5) * 60_000);
const clusterTest = testUnless(withoutPostgres());
const perMinute = 2000;
const [controls, machines, perMachine] = [3, 50, 10];
const room = machines * perMachine;
/** Interval between looks at what is promised. */
const lookMs = 200;

/** Once this share of the limit is used, removes one sandbox for each new one. */
const keptShare = 0.98;

class Storm {
  readonly #cluster: FakeCluster;
  readonly #limit: number;
  readonly #made: string[] = [];
  readonly #underWay = new Set<Promise<void>>();
  readonly tookMs: number[] = [];
  readonly statuses = new Map<number, number>();
  /** Messages of failures other than lack of room. */
  readonly failures: string[] = [];
  most = { team: 0, machine: 0 };

  constructor(cluster: FakeCluster, limit: number) {
    this.#cluster = cluster;
    this.#limit = limit;
  }

  /** Starts creates at their times, however long earlier ones take. */
  async blow(count: number): Promise<void> {
    const begunMs = performance.now();
    let isOver = false;
    const looking = (async () => {
      while (!isOver) {
        await this.#look();
        await Bun.sleep(lookMs);
      }
    })();
    for (let number = 0; number < count; number++) {
      await Bun.sleep(Math.max(0, begunMs + (number * 60_000) / perMinute - performance.now()));
      const one: Promise<void> = this.#create(number % controls).finally(() => this.#underWay.delete(one));
      this.#underWay.add(one);
    }
    await Promise.all(this.#underWay);
    isOver = true;
    await looking;
  }

  async clear(): Promise<void> {
    for (const [index, sandboxId] of this.#made.splice(0).entries()) await this.#kill(index % controls, sandboxId);
  }

  async #create(control: number): Promise<void> {
    const begunMs = performance.now();
    const { status, body } = await this.#cluster.call(control, 'POST', '/v2/sandboxes', {
      templateID: 'base',
      timeout: 3600,
    });
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (status >= 500 && status !== 503) this.failures.push(JSON.stringify(body));
    if (status !== 201) return;
    this.tookMs.push(performance.now() - begunMs);
    this.#made.push((body as { sandboxID: string }).sandboxID);
    const first = this.#made.length > keptShare * this.#limit ? this.#made.shift() : undefined;
    if (first !== undefined) await this.#kill((control + 1) % controls, first);
  }

  async #kill(control: number, sandboxId: string): Promise<void> {
    expect((await this.#cluster.call(control, 'DELETE', `/sandboxes/${sandboxId}`)).status).toBe(204);
  }

  /** What is promised at this moment, according to the rows and to the machines. */
  async #look(): Promise<void> {
    const rows = await this.#cluster.apis[0]?.parts.db
      .selectFrom('sandboxes')
      .select(({ fn }) => ['node_id', fn.countAll<number>().as('count')])
      .where('state', 'in', occupyingStates)
      .groupBy('node_id')
      .execute();
    const counts = (rows ?? []).map(({ count }) => Number(count));
    const told = this.#cluster.machines.map(({ node }) => node.executions().length);
    this.most.team = Math.max(
      this.most.team,
      counts.reduce((sum, count) => sum + count, 0),
    );
    this.most.machine = Math.max(this.most.machine, ...counts, ...told);
  }
}

for (const [what, limit, refusal] of [
  ['a team', room - 20, 429],
  ['the machines', 2 * room, 503],
] as const)
  clusterTest(`${perMinute} creates a minute do not go beyond what ${what} may have`, async () => {
    await using cluster = await startFakeCluster(postgresPrograms() ?? '', {
      controls,
      machines: Array.from({ length: machines }, () => ({
        cpuCount: 64,
        memoryBytes: 256 * 2 ** 30,
        sandboxesMax: perMachine,
      })),
      limits: { concurrentSandboxes: limit, sandboxes: 4 * room },
    });
    const most = Math.min(limit, room);
    const storm = new Storm(cluster, most);
    await storm.blow(Math.round(perMinute * minutes));
    const sorted = storm.tookMs.toSorted((a, b) => a - b);
    const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
    process.stderr.write(`${what}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${JSON.stringify([...storm.statuses])}\n`);
    expect(storm.failures).toEqual([]);
    expect(new Set(storm.statuses.keys()).difference(new Set([201, refusal])).size).toBe(0);
    expect(sorted.length).toBeGreaterThan(most);
    expect(storm.most.team).toBeLessThanOrEqual(most);
    expect(storm.most.team).toBeGreaterThan(0.9 * most);
    expect(storm.most.machine).toBe(perMachine);
    await storm.clear();
    expect(cluster.machines.flatMap(({ node }) => node.executions())).toEqual([]);
  });
