import { expect } from 'bun:test';
import { readFileSync } from 'node:fs';
import { randomOf } from '../../api/random.ts';
import { holdingsOf, restingCounts } from '../../support/leaks.ts';
import type { TestPlatform } from '../../support/platform.ts';
import { waitFor } from '../../support/process.ts';
import { StormClient } from './storm-client.ts';
import { askedOnceMore, checkMemory, countLater, startMemory, type StormMemory } from './storm-memory.ts';
import { Stores } from './storm-stores.ts';
import { approach, criuOf, storyOf, strike, type Victim } from './victims.ts';

/** How much of the platform's log is shown with a failure. */
const logCharactersMax = 8_000;
/** One client in so many builds templates and writes to volumes. */
const storesEvery = 3;
/** How long paused sandboxes stay frozen in a storm, `ATOLL_FROZEN_SECONDS`. */
export const frozenSeconds = 1;
/** Longer than that. */
const restMs = 1_500;
/**
 * One created sandbox in so many has memory that arrives later after a resume from the disk. These take longer for
 * everything: they are a quarter of those that run at a time.
 */
const memoryEvery = 2;

type Shown = 'running' | 'paused';
type Known = {
  id: string;
  /** Its possible states: one, unless a crash cut off the answer to a change. */
  states: Set<Shown | 'gone'>;
  /** The last text that was written into it and acknowledged, and one whose write was not acknowledged. */
  notes: Set<string>;
  /** The same for what its network denies; '' means nothing. */
  denied: Set<string>;
  /** Whether its process must be there, must not be there, or may be. */
  process: boolean | undefined;
  /** The content of a program's memory, in those that have one: it is there if the process is. */
  memory: StormMemory | undefined;
  /** It has such a program, even if a strike kept that from being reported. */
  isLarge: boolean;
  busy: boolean;
  /** Its memory may have been in a state that a pause does not keep: see docs/pause.md. */
  isUnsure: boolean;
  /** A paused one is left alone until then. */
  restsUntilMs: number;
  /** Whether its memory was being saved at the last strike: that may have ended a process. */
  isCutOff: boolean;
};

/** What a sandbox begins with. */
type Begins = Partial<Pick<Known, 'process' | 'memory' | 'isLarge'> & Record<'notes' | 'denied', string[]>>;

/** Says so when the process is one that `pgrep` finds. */
const startSleep =
  '(setsid sleep 86399 >/dev/null 2>&1 &); until pgrep -f "^sleep 86399" >/dev/null; do :; done; echo started';

type Listed = { sandboxID: string; state: Shown; transition?: string };

/** What the clients know, and what is asked of the platform. */
class Storm {
  readonly #client: StormClient;
  readonly known = new Map<string, Known>();
  /** Since the strike before: a starting sandbox is in no list until it runs. */
  #unknownLate = 0;
  /** Sandboxes for which nobody may be able to say whether their memory arrived: it is not kept, and they end. */
  #unsureMax = 0;

  constructor(client: StormClient) {
    this.#client = client;
  }

  #learn(id: string, { process, memory, isLarge = false, notes = [''], denied = [''] }: Begins = {}): Known {
    const sandbox: Known = {
      id,
      states: new Set(['running']),
      notes: new Set(notes),
      denied: new Set(denied),
      process,
      memory,
      isLarge,
      busy: false,
      isUnsure: false,
      restsUntilMs: 0,
      isCutOff: false,
    };
    this.known.set(id, sandbox);
    this.#client.histories.note(id, `begins, with its process: ${process}`);
    return sandbox;
  }

  /** Operations of one client, one after another, until the platform dies. */
  async work(random: () => number): Promise<void> {
    while (!this.#client.over) {
      const idle = [...this.known.values()].filter(
        ({ busy, states, restsUntilMs }) =>
          !busy && states.size === 1 && !states.has('gone') && restsUntilMs <= Date.now(),
      );
      const running = idle.filter(({ states }) => states.has('running'));
      const large = idle.filter(({ memory }) => memory);
      // They take longer, and would otherwise get few operations.
      const among = random() < 0.4 && large.length > 0 ? large : random() < 0.6 ? running : idle;
      const sandbox = among[Math.floor(random() * among.length)] ?? idle[0];
      const dice = random();
      if (!sandbox || (dice < 0.2 && idle.length < 8)) {
        if (!(await this.#create(random))) return;
        continue;
      }
      sandbox.busy = true;
      const goesOn = await this.#change(sandbox, dice, random);
      sandbox.busy = false;
      if (!goesOn) return;
    }
  }

  async #create(random: () => number): Promise<boolean> {
    this.#client.unknownMax++;
    const answer = await this.#client.ask('POST', '/sandboxes', { templateID: 'base', timeout: 3600 });
    if (!answer) return false;
    this.#client.unknownMax--;
    expect(answer.status).toBe(201);
    const sandbox = this.#learn((answer.body as { sandboxID: string }).sandboxID);
    sandbox.busy = true;
    // Until it is reported as started, it may have started.
    const started = await this.#client.run(sandbox.id, startSleep).catch(() => '');
    if (started === 'started\n') sandbox.process = true;
    sandbox.isLarge = sandbox.process === true && random() < 1 / memoryEvery;
    if (sandbox.isLarge) sandbox.memory = await startMemory(this.#client, sandbox.id, random);
    sandbox.busy = false;
    return true;
  }

  async #change(sandbox: Known, dice: number, random: () => number): Promise<boolean> {
    if (sandbox.states.has('paused'))
      return dice < (sandbox.memory ? 0.08 : 0.25) ? this.#kill(sandbox) : this.#resume(sandbox, random);
    if (dice < 0.4) return this.#pause(sandbox, random() < 0.6, random);
    if (dice < 0.5) return this.#setTimeout(sandbox, random);
    if (dice < 0.55) return this.#setNetwork(sandbox, random);
    if (dice < 0.7) return this.#write(sandbox, random);
    if (dice < 0.75) return this.#snapshot(sandbox, random);
    if (dice < 0.85) return this.#fork(sandbox, random);
    // Those with memory live longer, to be resumed repeatedly.
    return sandbox.memory && random() < 0.7 ? this.#pause(sandbox, true, random) : this.#kill(sandbox);
  }

  async #resume(sandbox: Known, random: () => number): Promise<boolean> {
    const { id, states, process } = sandbox;
    states.add('running');
    // If a resume is cut off, some processes may already have run: then the files are kept, but not the memory.
    sandbox.process = undefined;
    const answer = await this.#client.ask('POST', `/sandboxes/${id}/connect`, { timeout: 3600 });
    if (!answer) return false;
    expect([200, 201]).toContain(answer.status);
    sandbox.process = process;
    states.delete('paused');
    return this.#mayAskMemory(sandbox, random);
  }

  async #pause(sandbox: Known, memory: boolean, random: () => number): Promise<boolean> {
    const { id, states } = sandbox;
    states.add('paused');
    if (!memory) sandbox.process = undefined;
    const answer = await this.#client.ask('POST', `/sandboxes/${id}/pause`, { memory });
    sandbox.isCutOff = this.#client.over;
    if (!answer) return false;
    if (this.#isUnsure(sandbox, answer.status !== 204)) return this.#end(sandbox);
    expect({ id, status: answer.status, body: answer.body }).toMatchObject({ status: 204 });
    states.delete('running');
    if (memory) {
      // With only its files, if nobody could say that its memory had arrived.
      if (sandbox.isLarge && this.#unsureMax > 0) {
        sandbox.isUnsure = true;
        sandbox.process = undefined;
      }
      // So soon it would continue from the frozen state, not from the disk.
      if (random() < (sandbox.memory ? 0.75 : 0.25)) sandbox.restsUntilMs = Date.now() + restMs;
      return true;
    }
    sandbox.process = false;
    sandbox.memory = undefined;
    sandbox.isLarge = false;
    return true;
  }

  async #write(sandbox: Known, random: () => number): Promise<boolean> {
    const note = `note ${Math.floor(random() * 1e9)}`;
    sandbox.notes.add(note);
    const written = await this.#client
      .agent(sandbox.id, '/files?path=note.txt', {
        method: 'POST',
        headers: { 'Content-Type': 'application/octet-stream' },
        body: note,
      })
      .catch(() => undefined);
    if (written?.status !== 200) return !this.#client.over;
    sandbox.notes = new Set([note]);
    return true;
  }

  async #fork(sandbox: Known, random: () => number): Promise<boolean> {
    const { id } = sandbox;
    this.#client.unknownMax++;
    const answer = await this.#client.ask('POST', `/sandboxes/${id}/fork`, { count: 1, timeout: 3600 });
    // Each fork has its own answer: one may have been cut off while the answer for all was not.
    const [result] = (Array.isArray(answer?.body) ? answer.body : []) as [
      { error?: object; sandbox?: { sandboxID: string } }?,
    ];
    sandbox.isCutOff = this.#client.over;
    if (!answer || (result?.error && this.#client.over)) return false;
    this.#client.unknownMax--;
    if (this.#isUnsure(sandbox, !result?.sandbox)) return this.#end(sandbox);
    expect({ id, ...answer }).toMatchObject({ status: 201, body: [{ sandbox: {} }] });
    if (!result?.sandbox) return true;
    return this.#begin(this.#learn(result.sandbox.sandboxID, copyOf(sandbox)), random);
  }

  /** A sandbox that has another one's memory and continues from there. */
  async #begin(sandbox: Known, random: () => number): Promise<boolean> {
    sandbox.busy = true;
    const goesOn = await this.#mayAskMemory(sandbox, random);
    sandbox.busy = false;
    return goesOn;
  }

  /** Mostly at once, while it still arrives; otherwise the next request waits for it. */
  async #mayAskMemory(sandbox: Known, random: () => number): Promise<boolean> {
    if (random() < 0.7 && (await this.#askMemory(sandbox)) === 'none' && !this.#client.over) this.#miss(sandbox);
    return !this.#client.over;
  }

  /** Makes its program compare its memory; undefined if it has none, or a strike cut the answer off. */
  async #askMemory(sandbox: Known): Promise<'right' | 'none' | undefined> {
    const { memory, id } = sandbox;
    if (!memory) return undefined;
    // Before it is known whether the answer comes.
    sandbox.memory = askedOnceMore(memory);
    const found = await checkMemory(this.#client, id, memory);
    if (found === 'none' || !found) return found;
    sandbox.memory = found;
    sandbox.isUnsure = false;
    return 'right';
  }

  /** The program does not run, which must be allowed. */
  #miss(sandbox: Known): void {
    const { id, process } = sandbox;
    if (process) throw new Error(`the program of ${id} has ended\n${this.#client.histories.of(id)}`);
    // Of several that may be it, one is.
    if (sandbox.isUnsure && this.#unsureMax > 0) this.#unsureMax--;
    sandbox.isUnsure = false;
    sandbox.memory = undefined;
    sandbox.isLarge = false;
  }

  /** Whether the failure's cause is that nobody knows whether its memory arrived: its watcher was killed. */
  #isUnsure({ isLarge }: Known, hasFailed: boolean): boolean {
    return hasFailed && isLarge && this.#unsureMax > 0;
  }

  /** A sandbox whose memory can't be kept ends, and is paused with its files. */
  async #end(sandbox: Known): Promise<boolean> {
    this.#unsureMax--;
    sandbox.states.add('paused');
    sandbox.process = undefined;
    await waitFor(
      'the sandbox to be paused with its files',
      async () => this.#client.over || (await this.#stateOf(sandbox)) === 'paused',
    );
    if (this.#client.over) return false;
    this.#lose(sandbox);
    return true;
  }

  /** It is paused, with only its files. */
  #lose(sandbox: Known): void {
    sandbox.states = new Set(['paused']);
    sandbox.process = false;
    sandbox.memory = undefined;
    sandbox.isLarge = false;
    this.#client.histories.note(sandbox.id, 'is paused with its files alone');
  }

  /** Undefined if a strike cut the answer off. */
  async #stateOf({ id }: Known): Promise<Shown | 'gone' | undefined> {
    try {
      const answer = await this.#client.platform.api('GET', `/sandboxes/${id}`);
      if (answer.status === 404) return 'gone';
      return answer.status === 200 ? ((await answer.json()) as Listed).state : undefined;
    } catch {
      return undefined; // what would have answered was killed
    }
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
  async #snapshot(sandbox: Known, random: () => number): Promise<boolean> {
    const answer = await this.#client.ask('POST', `/sandboxes/${sandbox.id}/snapshots`, {});
    sandbox.isCutOff = this.#client.over;
    if (!answer) return false;
    if (this.#isUnsure(sandbox, answer.status !== 201)) return this.#end(sandbox);
    expect({ id: sandbox.id, ...answer }).toMatchObject({ status: 201 });
    const copy = copyOf(sandbox);
    this.#client.unknownMax++;
    const made = await this.#client.ask('POST', '/sandboxes', {
      templateID: (answer.body as { snapshotID: string }).snapshotID,
      timeout: 3600,
    });
    if (!made) return false;
    this.#client.unknownMax--;
    expect({ id: sandbox.id, ...made }).toMatchObject({ status: 201 });
    return this.#begin(this.#learn((made.body as { sandboxID: string }).sandboxID, { ...copy, denied: [''] }), random);
  }

  async #kill(sandbox: Known): Promise<boolean> {
    sandbox.states.add('gone');
    const answer = await this.#client.ask('DELETE', `/sandboxes/${sandbox.id}`);
    if (!answer) return false;
    expect(answer.status).toBe(204);
    sandbox.states = new Set(['gone']);
    return true;
  }

  /** What exists once nothing is in progress: requests that a killed edge had passed on continue. */
  async #list(): Promise<Listed[]> {
    let before = '';
    return waitFor('all that is under way to end', async () => {
      const listed = (await (await this.#client.platform.api('GET', '/v2/sandboxes')).json()) as Listed[];
      const isStill = JSON.stringify(listed) === before && listed.every(({ transition }) => transition === undefined);
      before = JSON.stringify(listed);
      return isStill ? listed : undefined;
    });
  }

  /** Compares the platform's state with what the clients were told, and takes it as known from then on. */
  async check(killed: Victim, count: number): Promise<void> {
    if (killed === 'keeper') this.#unsureMax += count;
    for (const sandbox of this.known.values()) {
      if (endCriu.includes(killed) && sandbox.isCutOff) {
        sandbox.process = undefined;
        // If it is missing, that is why.
        sandbox.isUnsure = false;
      }
      if (sandbox.isCutOff && sandbox.isLarge && this.#unsureMax > 0) {
        sandbox.process = undefined;
        sandbox.states.add('paused');
      }
      sandbox.isCutOff = false;
    }
    if (killed === 'bringer') await this.#seeWhoEnded(count);
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
    // Nobody was told of them: their contents are unknown.
    for (const id of unknown) expect((await this.#client.platform.api('DELETE', `/sandboxes/${id}`)).status).toBe(204);
    for (const sandbox of this.known.values()) {
      const state = listed.get(sandbox.id) ?? 'gone';
      sandbox.states = new Set([state]);
      sandbox.busy = false;
      if (state === 'running') await this.#look(sandbox);
    }
  }

  /** Among those whose memory was arriving, as many have ended as had it brought by a killed process. */
  async #seeWhoEnded(most: number): Promise<void> {
    let ended = 0;
    for (const sandbox of this.known.values()) {
      if (!sandbox.isLarge || !sandbox.states.has('running')) continue;
      const wasSure = sandbox.states.size === 1;
      const state = await waitFor(`${sandbox.id} to end, or to have its memory`, async () => {
        const state = await this.#stateOf(sandbox);
        if (state !== 'running') return state;
        const found = sandbox.memory ? await this.#askMemory(sandbox) : await this.#answers(sandbox);
        // An ended one may not be known to have ended.
        return (found === 'right' || (found === 'none' && !sandbox.process)) && state;
      });
      if (state !== 'paused') continue;
      if (wasSure) ended++;
      if (wasSure) this.#lose(sandbox);
      else sandbox.process = undefined;
    }
    expect(ended).toBeLessThanOrEqual(most);
  }

  async #answers({ id }: Known): Promise<'right' | undefined> {
    return (await this.#client.run(id, 'echo here').catch(() => '')) === 'here\n' ? 'right' : undefined;
  }

  async #look(sandbox: Known): Promise<void> {
    let last = '';
    // Its agent may have been killed last.
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
    const asked = () => this.#askMemory(sandbox);
    if (sandbox.memory && (await waitFor(`the memory of ${sandbox.id}`, asked)) === 'none') this.#miss(sandbox);
    sandbox.process = alive;
    this.#client.histories.note(sandbox.id, `looked at, its process: ${alive}`);
  }

  /** The state when something went wrong: sandboxes, their processes and those that work on them, the log. */
  async told(): Promise<string> {
    const { ready } = this.#client.platform;
    const ids = [...this.known.values()].flatMap(({ id, busy }) =>
      busy ? [`${id} is worked on: ${this.#client.histories.of(id)}`] : [],
    );
    ids.push(`${this.#unsureMax} at most may be such that nobody knows whether their memory came`);
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

  /** Lets everything that is paused run, examines it, and ends it. */
  async finish(): Promise<void> {
    for (const sandbox of this.known.values()) {
      if (sandbox.states.has('gone')) continue;
      const { platform } = this.#client;
      const answer = await platform.api('POST', `/sandboxes/${sandbox.id}/connect`, { timeout: 3600 });
      if (answer.status > 201) throw new Error(`${sandbox.id}: ${await answer.text()}\n${await this.told()}`);
      await this.#look(sandbox);
      expect((await this.#client.platform.api('DELETE', `/sandboxes/${sandbox.id}`)).status).toBe(204);
    }
  }
}

/**
 * Victims whose death ends a CRIU that is dumping: the process being dumped may end with it (docs/pause.md, "When CRIU
 * is killed"). A CRIU whose agent is killed also ends, and is tried again. It survives the death of any other.
 */
const endCriu: readonly Victim[] = ['criu', 'agent'];

/** What a copy of a sandbox has. */
function copyOf({ isCutOff, process, memory, isLarge, notes, denied }: Known): Begins {
  return { process: isCutOff ? undefined : process, memory, isLarge, notes: [...notes], denied: [...denied] };
}

/** The kernel's report of what a process is doing. */
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

/** The figures of a storm. */
export type StormResult = {
  answered: number;
  strikes: Record<string, number>;
  sandboxes: number;
  templates: number;
  volumes: number;
  /** Restores whose memory arrived later. */
  later: number;
};

/**
 * Clients work on sandboxes while processes of the platform are killed, one after another, at random moments. After
 * each strike, the state is compared with what the clients were told; at the end nothing may be left. Throws at the
 * first difference.
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
    /** `count`: killed processes; `later`: restores so far whose memory arrived later. */
    onStrike?: (victim: Victim, so: { count: number; answered: number; later: number }) => void;
    /** How long it may take until nothing is left; default: as long as for a few sandboxes. */
    restTimeoutMs?: number;
  },
): Promise<StormResult> {
  const { seed, operations, perStrike, clients, victims, onStrike, restTimeoutMs } = options;
  const before = await restingCounts(platform.ready.dataDir);
  using later = countLater(platform);
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
    const found = await approach(platform, victim, random() < 0.7);
    client.over = true;
    const { count, recovered } = await strike(platform, victim, found);
    await Promise.all(working);
    if (failure !== undefined) throw new Error(`${failure}\n${await storm.told()}`);
    await recovered();
    if (count > 0) strikes[victim] = (strikes[victim] ?? 0) + 1;
    onStrike?.(victim, { count, answered: client.answered, later: later.seen() });
    try {
      await storm.check(victim, count);
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
  return { answered: client.answered, strikes, sandboxes: storm.known.size, ...stores.made, later: later.seen() };
}
