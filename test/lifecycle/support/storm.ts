import { expect } from 'bun:test';
import { readFileSync } from 'node:fs';
import { randomOf } from '../../api/random.ts';
import { holdingsOf, restingCounts } from '../../support/leaks.ts';
import type { TestPlatform } from '../../support/platform.ts';
import { waitFor } from '../../support/process.ts';
import { StormClient } from './storm-client.ts';
import { Stores } from './storm-stores.ts';
import { criuOf, storyOf, strike, type Victim } from './victims.ts';

/** Of the platform's log, with a failure. */
const logCharactersMax = 8_000;
/** One client of so many builds templates and writes to volumes. */
const storesEvery = 3;

type Shown = 'running' | 'paused';
type Known = {
  id: string;
  /** The states that it may be in: one, unless a crash cut off the answer to a change. */
  states: Set<Shown | 'gone'>;
  /** The last text that was written into it and acknowledged, and one whose write was not. */
  notes: Set<string>;
  /** The same for what its network denies; '' is nothing of the kind. */
  denied: Set<string>;
  /** Whether its process must be there, must not be there, or may be. */
  process: boolean | undefined;
  busy: boolean;
  /** Whether its memory was being kept when the last strike came: a process may have ended of that. */
  isCutOff: boolean;
};

/** Says so when the process is one that `pgrep` finds. */
const startSleep =
  '(setsid sleep 86399 >/dev/null 2>&1 &); until pgrep -f "^sleep 86399" >/dev/null; do :; done; echo started';

type Listed = { sandboxID: string; state: Shown; transition?: string };

/** What the clients know, and what is asked of the platform. */
class Storm {
  readonly #client: StormClient;
  readonly known = new Map<string, Known>();
  /** Of the strike before: one that was starting is in no list until it runs. */
  #unknownLate = 0;

  constructor(client: StormClient) {
    this.#client = client;
  }

  #learn(id: string, process: boolean | undefined, notes: string[], denied = ['']): Known {
    const sandbox: Known = {
      id,
      states: new Set(['running']),
      notes: new Set(notes),
      denied: new Set(denied),
      process,
      busy: false,
      isCutOff: false,
    };
    this.known.set(id, sandbox);
    this.#client.histories.note(id, `begins, with its process: ${process}`);
    return sandbox;
  }

  /** Operations of one client, one after the other, until the platform dies under it. */
  async work(random: () => number): Promise<void> {
    while (!this.#client.over) {
      const idle = [...this.known.values()].filter(
        ({ busy, states }) => !busy && states.size === 1 && !states.has('gone'),
      );
      const running = idle.filter(({ states }) => states.has('running'));
      const sandbox = (random() < 0.6 ? running : idle)[Math.floor(random() * idle.length)] ?? idle[0];
      const dice = random();
      if (!sandbox || (dice < 0.2 && idle.length < 8)) {
        if (!(await this.#create())) return;
        continue;
      }
      sandbox.busy = true;
      const goesOn = await this.#change(sandbox, dice, random);
      sandbox.busy = false;
      if (!goesOn) return;
    }
  }

  async #create(): Promise<boolean> {
    this.#client.unknownMax++;
    const answer = await this.#client.ask('POST', '/sandboxes', { templateID: 'base', timeout: 3600 });
    if (!answer) return false;
    this.#client.unknownMax--;
    expect(answer.status).toBe(201);
    const sandbox = this.#learn((answer.body as { sandboxID: string }).sandboxID, undefined, ['']);
    sandbox.busy = true;
    // Until it is told that it started, it may have started.
    const started = await this.#client.run(sandbox.id, startSleep).catch(() => '');
    if (started === 'started\n') sandbox.process = true;
    sandbox.busy = false;
    return true;
  }

  async #change(sandbox: Known, dice: number, random: () => number): Promise<boolean> {
    const { id, states } = sandbox;
    const path = `/sandboxes/${id}`;
    if (states.has('paused')) {
      if (dice < 0.25) return this.#kill(sandbox);
      states.add('running');
      const before = sandbox.process;
      // Of a resume that is cut off, some processes may have run already: then the files are kept, and not the memory.
      sandbox.process = undefined;
      const answer = await this.#client.ask('POST', `${path}/connect`, { timeout: 3600 });
      if (!answer) return false;
      expect([200, 201]).toContain(answer.status);
      sandbox.process = before;
      states.delete('paused');
      return true;
    }
    if (dice < 0.4) {
      const memory = random() < 0.6;
      const before = sandbox.process;
      states.add('paused');
      if (!memory) sandbox.process = undefined;
      const answer = await this.#client.ask('POST', `${path}/pause`, { memory });
      sandbox.isCutOff = this.#client.over;
      if (!answer) return false;
      expect({ id, status: answer.status, body: answer.body }).toMatchObject({ status: 204 });
      states.delete('running');
      sandbox.process = memory ? before : false;
      return true;
    }
    if (dice < 0.5) return this.#setTimeout(sandbox, random);
    if (dice < 0.55) return this.#setNetwork(sandbox, random);
    if (dice < 0.7) {
      const note = `note ${Math.floor(random() * 1e9)}`;
      sandbox.notes.add(note);
      const written = await this.#client
        .agent(id, '/files?path=note.txt', {
          method: 'POST',
          headers: { 'Content-Type': 'application/octet-stream' },
          body: note,
        })
        .catch(() => undefined);
      if (written?.status !== 200) return !this.#client.over;
      sandbox.notes = new Set([note]);
      return true;
    }
    if (dice < 0.75) return this.#snapshot(sandbox);
    if (dice < 0.85) {
      this.#client.unknownMax++;
      const answer = await this.#client.ask('POST', `${path}/fork`, { count: 1, timeout: 3600 });
      // Each fork has an answer of its own: that of one may have been cut off where that of all was not.
      const [cutOff] = (answer?.body ?? []) as [{ error?: object }?];
      sandbox.isCutOff = this.#client.over;
      if (!answer || (cutOff?.error && this.#client.over)) return false;
      this.#client.unknownMax--;
      expect({ id, ...answer }).toMatchObject({ status: 201, body: [{ sandbox: {} }] });
      const [result] = answer.body as [{ sandbox?: { sandboxID: string } }];
      if (result.sandbox)
        this.#learn(result.sandbox.sandboxID, this.#processOf(sandbox), [...sandbox.notes], [...sandbox.denied]);
      return true;
    }
    return this.#kill(sandbox);
  }

  /** Later, or at once: then it is gone as if it had been killed. */
  async #setTimeout(sandbox: Known, random: () => number): Promise<boolean> {
    const ends = random() < 0.3;
    if (ends) sandbox.states.add('gone');
    const answer = await this.#client.ask('POST', `/sandboxes/${sandbox.id}/timeout`, { timeout: ends ? 0 : 3600 });
    if (!answer) return false;
    expect(answer.status).toBe(204);
    if (!ends) return true;
    sandbox.states = new Set(['gone']);
    await waitFor(
      'the expired sandbox to be gone',
      async () => this.#client.over || (await this.#client.ask('GET', `/sandboxes/${sandbox.id}`))?.status !== 200,
    );
    return !this.#client.over;
  }

  async #setNetwork(sandbox: Known, random: () => number): Promise<boolean> {
    const denied = `198.51.100.${Math.floor(random() * 256)}/32`;
    sandbox.denied.add(denied);
    const answer = await this.#client.ask('PUT', `/sandboxes/${sandbox.id}/network`, { denyOut: [denied] });
    if (!answer) return false;
    expect(answer.status).toBe(204);
    sandbox.denied = new Set([denied]);
    return true;
  }

  /** A snapshot of it, and a sandbox that begins with that. */
  async #snapshot(sandbox: Known): Promise<boolean> {
    const answer = await this.#client.ask('POST', `/sandboxes/${sandbox.id}/snapshots`, {});
    sandbox.isCutOff = this.#client.over;
    if (!answer) return false;
    expect({ id: sandbox.id, ...answer }).toMatchObject({ status: 201 });
    this.#client.unknownMax++;
    const made = await this.#client.ask('POST', '/sandboxes', {
      templateID: (answer.body as { snapshotID: string }).snapshotID,
      timeout: 3600,
    });
    if (!made) return false;
    this.#client.unknownMax--;
    expect({ id: sandbox.id, ...made }).toMatchObject({ status: 201 });
    this.#learn((made.body as { sandboxID: string }).sandboxID, this.#processOf(sandbox), [...sandbox.notes]);
    return true;
  }

  /** Whether a copy of it has its process. */
  #processOf(sandbox: Known): boolean | undefined {
    return sandbox.isCutOff ? undefined : sandbox.process;
  }

  async #kill(sandbox: Known): Promise<boolean> {
    sandbox.states.add('gone');
    const answer = await this.#client.ask('DELETE', `/sandboxes/${sandbox.id}`);
    if (!answer) return false;
    expect(answer.status).toBe(204);
    sandbox.states = new Set(['gone']);
    return true;
  }

  /** What there is, once nothing is under way: what an edge that was killed had passed on goes on. */
  async #list(): Promise<Listed[]> {
    let before = '';
    return waitFor('all that is under way to end', async () => {
      const listed = (await (await this.#client.platform.api('GET', '/v2/sandboxes')).json()) as Listed[];
      const isStill = JSON.stringify(listed) === before && listed.every(({ transition }) => transition === undefined);
      before = JSON.stringify(listed);
      return isStill ? listed : undefined;
    });
  }

  /** Compares what the platform has with what the clients were told, and makes what it has what is known. */
  async check(killed: Victim): Promise<void> {
    for (const sandbox of this.known.values()) {
      // The process on which a CRIU was at work that is killed may end with it: docs/pause.md, "When CRIU is killed".
      // One whose agent is killed under it ends likewise, and is tried again.
      if ((killed === 'criu' || killed === 'agent') && sandbox.isCutOff) sandbox.process = undefined;
      sandbox.isCutOff = false;
    }
    const listed = new Map((await this.#list()).map(item => [item.sandboxID, item.state]));
    const wrong = [...this.known.values()].filter(({ id, states }) => !states.has(listed.get(id) ?? 'gone'));
    const told = wrong.map(
      ({ id, states }) => `${[...states]}, is ${listed.get(id) ?? 'gone'}: ${this.#client.histories.of(id)}`,
    );
    expect(told).toEqual([]);
    const unknown = [...listed.keys()].filter(id => !this.known.has(id));
    expect(unknown.length).toBeLessThanOrEqual(this.#client.unknownMax + this.#unknownLate);
    this.#unknownLate = this.#client.unknownMax;
    this.#client.unknownMax = 0;
    // Nobody was told of them: what is in them is not known.
    for (const id of unknown) expect((await this.#client.platform.api('DELETE', `/sandboxes/${id}`)).status).toBe(204);
    for (const sandbox of this.known.values()) {
      const state = listed.get(sandbox.id) ?? 'gone';
      sandbox.states = new Set([state]);
      sandbox.busy = false;
      if (state === 'running') await this.#look(sandbox);
    }
  }

  async #look(sandbox: Known): Promise<void> {
    let last = '';
    // Its agent may have been what was killed last.
    const answer = await waitFor('the agent to answer', async () => {
      const answer = await this.#client
        .agent(sandbox.id, '/files?path=note.txt')
        .catch((error: unknown) => String(error));
      if (typeof answer !== 'string' && answer.status < 500) return answer;
      last = typeof answer === 'string' ? answer : `${answer.status} ${await answer.text()}`;
      return undefined;
    }).catch(async (error: unknown) => {
      throw new Error(`${sandbox.id}: ${last}`, { cause: error });
    });
    const note = answer.status === 200 ? await answer.text() : '';
    expect({ id: sandbox.id, isKnown: sandbox.notes.has(note), note, notes: [...sandbox.notes] }).toMatchObject({
      isKnown: true,
    });
    sandbox.notes = new Set([note]);
    const detail = (await (await this.#client.platform.api('GET', `/sandboxes/${sandbox.id}`)).json()) as {
      network?: { denyOut?: string[] };
    };
    const denied = detail.network?.denyOut?.join(' ') ?? '';
    expect({ id: sandbox.id, isKnown: sandbox.denied.has(denied), denied, known: [...sandbox.denied] }).toMatchObject({
      isKnown: true,
    });
    sandbox.denied = new Set([denied]);
    const found = await this.#client.run(sandbox.id, 'pgrep -c -f "^sleep 86399" || ps -ef');
    const alive = found.trim() === '1';
    if (alive !== (sandbox.process ?? alive))
      throw new Error(`the process of ${sandbox.id}: ${alive}\n${found}\n${this.#client.histories.of(sandbox.id)}`);
    sandbox.process = alive;
    this.#client.histories.note(sandbox.id, `looked at, its process: ${alive}`);
  }

  /** What there is when something went wrong: sandboxes, their processes and those that work on them, the log. */
  async told(): Promise<string> {
    const { ready } = this.#client.platform;
    const ids = [...this.known.values()].flatMap(({ id, busy }) => (busy ? [`${id} is worked on`] : []));
    const listed = await this.#client
      .ask('GET', '/v2/sandboxes?state=running,paused')
      .catch((error: unknown) => String(error));
    const states = holdingsOf(ready.dataDir).processes.map(line => `${line} ${stateOf(line.split(' ')[0])}`);
    const programs = criuOf(this.#client.platform).map(storyOf);
    return [
      ...ids,
      JSON.stringify(listed),
      ...states,
      ...programs,
      this.#client.platform.log().slice(-logCharactersMax),
    ].join('\n');
  }

  /** Lets everything that is paused run, looks into it, and ends it. */
  async finish(): Promise<void> {
    for (const sandbox of this.known.values()) {
      if (sandbox.states.has('gone')) continue;
      expect([200, 201]).toContain(
        (await this.#client.platform.api('POST', `/sandboxes/${sandbox.id}/connect`, { timeout: 3600 })).status,
      );
      await this.#look(sandbox);
      expect((await this.#client.platform.api('DELETE', `/sandboxes/${sandbox.id}`)).status).toBe(204);
    }
  }
}

/** What a process is doing, as the kernel says it. */
function stateOf(pid: string | undefined): string {
  const status = readText(`/proc/${pid}/status`);
  const lines = status.split('\n').filter(line => /^(State|TracerPid|NSpid):/.test(line));
  return [...lines, readText(`/proc/${pid}/wchan`)].join(' ').replaceAll(/\s+/g, ' ');
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // it has ended
  }
}

/** What a storm was, in figures. */
export type StormResult = {
  answered: number;
  strikes: Record<string, number>;
  sandboxes: number;
  templates: number;
  volumes: number;
};

/**
 * Clients work on sandboxes while one process of the platform after the other is killed at random moments. After each
 * strike what there is is compared with what the clients were told; at the end nothing may be left. Throws at the first
 * difference.
 */
export async function runStorm(
  platform: TestPlatform,
  options: {
    seed: number;
    /** How many operations are answered in all, and how many of them lie between two strikes on average. */
    operations: number;
    perStrike: number;
    clients: number;
    victims: readonly Victim[];
    onStrike?: (victim: Victim, answered: number) => void;
    /** How long it may take until nothing is left; absent: as long as for a few sandboxes. */
    restTimeoutMs?: number;
  },
): Promise<StormResult> {
  const { seed, operations, perStrike, clients, victims, onStrike, restTimeoutMs } = options;
  const before = await restingCounts(platform.ready.dataDir);
  const random = randomOf(seed);
  const client = new StormClient(platform);
  const storm = new Storm(client);
  const stores = new Stores(client);
  const strikes: Record<string, number> = {};
  while (client.answered < operations) {
    client.over = false;
    let failure: unknown;
    const working = Array.from({ length: clients }, (_, index) =>
      (index % storesEvery === storesEvery - 1 ? stores : storm)
        .work(randomOf(Math.floor(random() * 2 ** 31)))
        .catch((error: unknown) => {
          failure ??= error;
        }),
    );
    const until = client.answered + perStrike * (0.5 + random());
    await waitFor('the operations', () => failure !== undefined || client.answered >= until, 300_000);
    await Bun.sleep(random() * 300);
    const victim = victims[Math.floor(random() * victims.length)] ?? 'platform';
    client.over = true;
    const recovered = await strike(platform, victim);
    await Promise.all(working);
    if (failure !== undefined) throw new Error(`${failure}\n${await storm.told()}`);
    await recovered();
    strikes[victim] = (strikes[victim] ?? 0) + 1;
    onStrike?.(victim, client.answered);
    try {
      await storm.check(victim);
      await stores.check(random);
    } catch (cause) {
      throw new Error(`after ${victim} was killed: ${await storm.told()}`, { cause });
    }
  }
  await storm.finish();
  await stores.finish();
  const after = await restingCounts(platform.ready.dataDir, before, restTimeoutMs);
  const left = Bun.deepEquals(after, before)
    ? ''
    : `${JSON.stringify(holdingsOf(platform.ready.dataDir))}\n${platform.log().slice(-logCharactersMax)}`;
  expect({ ...after, left }).toEqual({ ...before, left: '' });
  return { answered: client.answered, strikes, sandboxes: storm.known.size, ...stores.made };
}
