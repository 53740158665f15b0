import { spyOn } from 'bun:test';
import { newSandboxId, newUuid } from '../../../src/base/id.ts';
import { AtollError } from '../../../src/base/error.ts';
import { forgetNode } from '../../../src/api/cluster/rules/forget.ts';
import { setNodeStatus } from '../../../src/api/placement/node-status.ts';
import { placeSandbox } from '../../../src/api/placement/place.ts';
import { defaultOptions, type SandboxRecord } from '../../../src/api/sandbox/record.ts';
import { findExecution, sandboxesIn } from '../../../src/api/sandbox/store/read.ts';
import { createSandboxWorkflow } from '../../../src/api/sandbox/workflows/create/steps.ts';
import { killSandbox } from '../../../src/api/sandbox/workflows/kill.ts';
import { moveSandbox } from '../../../src/api/sandbox/workflows/move/move.ts';
import { pauseSandbox } from '../../../src/api/sandbox/workflows/pause/pause.ts';
import { resumeTeamsSandbox } from '../../../src/api/sandbox/workflows/resume/resume.ts';
import type { TeamRecord } from '../../../src/api/team/record.ts';
import { sandboxStates } from '../../../src/protocol/state.ts';
import { type Control, startControl } from './control.ts';
import type { DatabaseFault, DatabaseStep, SharedDatabase } from './database.ts';
import { SimMachine } from './machine.ts';
import { type Chance, Plan, Process, World } from './world.ts';

const controlsMax = 2;
const machinesMax = 3;
const clients = 3;
/** How many sandboxes of the only size fit on a machine, from its CPUs and how often they may be promised. */
const roomOfEach = 4;
/** After more than 15 s of standing still, others consider a control process dead, and then it goes on. */
const stoppedMsMax = 30_000;
const faultyMs = 45_000;
const healedMs = 45_000;
/** For resuming everything in the store. */
const resumedMs = 20_000;

/** Clients' requests, in proportion to their frequency. */
const requests = ['create', 'create', 'pause', 'store', 'resume', 'resume', 'move', 'move', 'kill'] as const;

const faultKinds = [
  'cut',
  'cut one way',
  'kill',
  'stop',
  'restart',
  'drain',
  'destroy',
  'database',
  'stand still',
  'disk',
] as const;
/** For a change that was made, without a lasting fault of the database. */
const unansweredChance = 0.002;

/** The answers that a run's clients got. */
type Answers = {
  /** Created, and not known to have ended. */
  created: Set<string>;
  /** A kill was requested: it may be gone. */
  condemned: Set<string>;
  killed: Set<string>;
  /** For an answered pause that outlives its machine: the saved state. It never runs in an earlier state again. */
  kept: Map<string, number>;
  /** Those about which nothing was requested since. */
  durable: Set<string>;
};

/** The result of a run. */
export type Outcome = { seed: number; moves: number; answered: number; databaseFaults: number; events: string };

/** A run is like others of its seed, except for this. */
export type Variation = {
  /** Numbers of the left-out actions (of clients, and faults). */
  leftOut?: ReadonlySet<number>;
  /** Puts a fault into a machine that is not part of its world, for tests of the simulation. */
  sabotage?: (machine: SimMachine) => void;
};

/** Something forbidden has happened. `actions`: how many actions there had been. */
export class Violation extends Error {
  readonly actions: number;

  constructor(message: string, actions: number) {
    super(message);
    this.actions = actions;
  }
}

/**
 * Runs a cluster for two simulated minutes: first, control processes and machines are disconnected, stopped, killed and
 * destroyed while clients create, pause, resume, move and kill; then everything heals. Throws at the first violation.
 */
export async function simulate(
  seed: number,
  database: SharedDatabase,
  team: TeamRecord,
  variation: Variation = {},
): Promise<Outcome> {
  await database.empty();
  const world = new World(seed);
  // The product's waits and its random choices.
  const spies = [
    spyOn(Bun, 'sleep').mockImplementation(ms => world.sleep(Number(ms))),
    spyOn(performance, 'now').mockImplementation(() => world.nowMs),
    spyOn(Math, 'random').mockImplementation(() => world.random()),
  ];
  const run = new Run(seed, world, database, team, variation);
  database.decide = step => run.databaseFault(step);
  try {
    return await run.whole();
  } finally {
    database.decide = undefined;
    run.end();
    for (const spy of spies) spy.mockRestore();
  }
}

class Run {
  readonly #seed: number;
  readonly #world: World;
  readonly #db: SharedDatabase['db'];
  readonly #team: TeamRecord;
  readonly #plan: Plan;
  readonly #sabotage: NonNullable<Variation['sabotage']>;
  readonly #objects = new Map<string, never>();
  readonly #machines: SimMachine[] = [];
  #controls: Control[] = [];
  readonly #answers: Answers = {
    created: new Set(),
    condemned: new Set(),
    killed: new Set(),
    kept: new Map(),
    durable: new Set(),
  };
  /** The last request about each sandbox. */
  readonly #lastAsked = new Map<string, object>();
  readonly #trace: string[] = [];
  readonly #outside = new Process('outside');
  /** Control processes that can't reach the database. */
  readonly #withoutDatabase = new Set<string>();
  #moves = 0;
  #databaseFaults = 0;
  #answered = 0;
  #isHealed = false;

  constructor(
    seed: number,
    world: World,
    { db }: SharedDatabase,
    team: TeamRecord,
    { leftOut = new Set(), sabotage = () => {} }: Variation,
  ) {
    this.#seed = seed;
    this.#plan = new Plan(seed, leftOut);
    this.#sabotage = sabotage;
    this.#world = world;
    this.#db = db;
    this.#team = team;
  }

  async whole(): Promise<Outcome> {
    const outside = this.#outside;
    await this.#world.as(outside, async () => {
      for (let number = 1; number <= machinesMax; number++) await this.#join(`node-${number}`);
      for (let number = 1; number <= controlsMax; number++) await this.#begin(`control-${number}`);
      for (let number = 0; number < clients; number++) void this.#client(this.#plan.actor(number));
      void this.#faults(this.#plan.actor(clients));
    });
    await this.#world.run(faultyMs, () => this.#check());
    this.#isHealed = true;
    await this.#world.as(outside, () => this.#heal());
    await this.#world.run(faultyMs + healedMs, () => this.#check());
    await this.#checkAll();
    await this.#resumeStored();
    const counts = { moves: this.#moves, answered: this.#answered, databaseFaults: this.#databaseFaults };
    return { seed: this.#seed, ...counts, events: this.#trace.join('\n') };
  }

  /**
   * What fails in the database, for the process whose turn it is: everything while it is away, and now and then an
   * answer.
   */
  databaseFault(step: DatabaseStep): DatabaseFault {
    const { name } = this.#world.turn ?? this.#outside;
    if (name === this.#outside.name || this.#world.nowMs === 0 || this.#isHealed) return 'none';
    const isAway = this.#withoutDatabase.has(name);
    const isUnanswered = step !== 'connect' && this.#world.chance(isAway ? 0.5 : unansweredChance);
    if (isAway || isUnanswered) this.#databaseFaults++;
    if (isUnanswered) return 'unanswered';
    return isAway ? 'refused' : 'none';
  }

  /** Leftovers of this run must not wake up in the next one. */
  end(): void {
    for (const { process } of [...this.#controls, ...this.#machines, { process: this.#outside }]) process.end();
  }

  async #join(nodeId: string): Promise<void> {
    const machine = new SimMachine(this.#world, nodeId, this.#objects as never);
    this.#sabotage(machine);
    this.#machines.push(machine);
    const info = await machine.service.node.info();
    const never = Number.MAX_SAFE_INTEGER;
    const row = { node_id: nodeId, address: '203.0.113.1:1', certificates_json: '[]', renew_at_us: never };
    const rest = { joined_at_us: 0, lease_until_us: null, given_up: 0 as const, boot_id: null };
    await this.#db
      .insertInto('cluster_nodes')
      .values({ ...row, ...rest, info_json: JSON.stringify(info) })
      .execute();
  }

  async #begin(name: string): Promise<void> {
    this.#controls = this.#controls.filter(({ process }) => process.name !== name);
    this.#controls.push(await startControl(this.#world, name, this.#db, this.#machines, this.#objects));
  }

  #note(what: string): void {
    this.#trace.push(`${this.#world.nowMs} ${what}`);
  }

  /** Repeatedly requests something from some control process. */
  async #client(chance: Chance): Promise<void> {
    const world = this.#world;
    while (!this.#isHealed) {
      await world.sleep(chance.between(200, 3000));
      const control = chance.pick(this.#controls.filter(({ process }) => !process.ended));
      const what = chance.pick(requests) ?? 'create';
      const which = chance.random();
      if (this.#isHealed || !this.#plan.next() || !control) continue;
      const asked = world
        .as(control.process, () => this.#ask(control, what, which))
        .catch((error: unknown) => {
          if (!(error instanceof AtollError)) throw error;
          this.#note(`refused: ${error.message}`);
        });
      // A request without an answer is given up.
      await Promise.race([asked, world.sleep(20_000)]);
    }
  }

  /** `which`: selects one of the existing sandboxes, by a number in [0, 1). */
  async #ask({ parts }: Control, what: (typeof requests)[number], which: number): Promise<void> {
    const { created } = this.#answers;
    const sandboxId = [...created][Math.floor(which * created.size)];
    if (what === 'create' || !sandboxId) return this.#create(parts);
    this.#note(`${what} ${sandboxId}`);
    this.#answers.durable.delete(sandboxId);
    const asked = {};
    this.#lastAsked.set(sandboxId, asked);
    if (what === 'kill') {
      this.#answers.condemned.add(sandboxId);
      await killSandbox(parts, this.#team, sandboxId);
      created.delete(sandboxId);
      this.#answers.killed.add(sandboxId);
    } else if (what === 'pause' || what === 'store') {
      const durability = what === 'store' ? 'cluster' : 'node';
      const paused = await pauseSandbox(parts, this.#team, sandboxId, { memory: true, durability });
      const held = this.#machines.flatMap(({ paused: there }) => there.get(paused.executionId) ?? [])[0];
      if (paused.durability === 'cluster' && held) {
        this.#answers.kept.set(sandboxId, held.version);
        // The answer may come late, when something else was requested and done.
        if (this.#lastAsked.get(sandboxId) === asked) this.#answers.durable.add(sandboxId);
      }
    } else if (what === 'resume') {
      await resumeTeamsSandbox(parts, this.#team, sandboxId, { seconds: 3600, memory: true });
    } else {
      const row = (await sandboxesIn(this.#db, ['running'])).find(one => one.sandboxId === sandboxId);
      const whole = row && (await findExecution(this.#db, row));
      if (!whole) return;
      await moveSandbox(parts, whole);
      this.#moves++;
    }
    this.#answered++;
  }

  async #create(parts: Control['parts']): Promise<void> {
    const { cpuCount, memoryMiB } = { cpuCount: 1, memoryMiB: 512 };
    const { nodeId, protocol } = await placeSandbox(parts.nodes, this.#db, { cpuCount, memoryMiB });
    const sandbox = newRow(this.#team.teamId, nodeId, parts.clock());
    this.#note(`create ${sandbox.sandboxId} on ${nodeId}`);
    const image = { templateId: 't', buildId: 'b', layers: [], defaultUser: 'user', defaultWorkdir: '', buildEnv: {} };
    const context = { deps: parts, team: this.#team, node: protocol, image, sandbox };
    await createSandboxWorkflow(context, new AbortController().signal);
    this.#answers.created.add(sandbox.sandboxId);
    this.#answered++;
  }

  /** One fault after another, and sometimes two at a time. */
  async #faults(chance: Chance): Promise<void> {
    const world = this.#world;
    while (!this.#isHealed) {
      await world.sleep(chance.between(1000, 12_000));
      if (this.#isHealed) return;
      const machine = chance.pick(this.#machines.filter(({ isDestroyed }) => !isDestroyed));
      const control = chance.pick(this.#controls.filter(({ process }) => !process.ended));
      const fault = chance.pick(faultKinds);
      const scale = chance.random();
      if (!this.#plan.next() || !machine || !control) continue;
      this.#note(`${fault} ${machine.nodeId} ${control.process.name}`);
      const all = this.#controls.map(({ process }) => process.name);
      const lasting = (min: number, max: number) => min + Math.floor(scale * (max - min));
      if (fault === 'cut') void this.#cut(machine, all, lasting(500, 35_000));
      if (fault === 'cut one way') void this.#cut(machine, [control.process.name], lasting(500, 35_000));
      if (fault === 'kill') void this.#kill(control, lasting(500, 20_000));
      if (fault === 'stop') control.process.stoppedUntilMs = world.nowMs + lasting(1000, stoppedMsMax);
      if (fault === 'restart') machine.restart();
      if (fault === 'database')
        void this.#loseDatabase(scale < 0.5 ? all : [control.process.name], lasting(500, 25_000));
      if (fault === 'stand still') await this.#standStill(machine, lasting(1000, stoppedMsMax), chance.chance(0.5));
      if (fault === 'disk') void this.#fillDisk(machine, lasting(1000, 20_000));
      if (fault === 'drain') void this.#drain(machine, lasting(3000, 20_000));
      if (fault === 'destroy' && this.#machines.every(({ isDestroyed }) => !isDestroyed) && scale < 0.4)
        machine.destroy();
    }
  }

  async #standStill(machine: SimMachine, ms: number, withClock: boolean): Promise<void> {
    if (machine.isStopped) return;
    // Whoever requested something that begins there may be gone, or without the database, before it hears of it.
    const rows = await sandboxesIn(this.#db, sandboxStates);
    const known = rows.filter(({ state, nodeId }) => state !== 'starting' && nodeId === machine.nodeId);
    machine.standStill(ms, withClock, new Set(known.map(({ executionId }) => executionId)));
  }

  async #cut(machine: SimMachine, from: string[], ms: number): Promise<void> {
    for (const name of from) machine.cut.add(name);
    await this.#world.sleep(ms);
    for (const name of from) machine.cut.delete(name);
  }

  async #fillDisk(machine: SimMachine, ms: number): Promise<void> {
    machine.isDiskFull = true;
    await this.#world.sleep(ms);
    machine.isDiskFull = false;
  }

  async #loseDatabase(names: string[], ms: number): Promise<void> {
    for (const name of names) this.#withoutDatabase.add(name);
    await this.#world.sleep(ms);
    for (const name of names) this.#withoutDatabase.delete(name);
  }

  async #kill({ process }: Control, ms: number): Promise<void> {
    process.end();
    await this.#world.sleep(ms);
    // Without its database it does not start, and is restarted.
    while (!this.#isHealed && !(await this.#begin(process.name).then(isDone, isRefusal))) await this.#world.sleep(1000);
  }

  async #drain({ nodeId }: SimMachine, ms: number): Promise<void> {
    await setNodeStatus(this.#db, { nodeId, status: 'moving', changedAtUs: 0 });
    await this.#world.sleep(ms);
    await setNodeStatus(this.#db, { nodeId, status: 'ready', changedAtUs: 0 });
  }

  async #heal(): Promise<void> {
    this.#note('healed');
    for (const { process } of this.#controls) this.#world.goOn(process);
    for (const machine of this.#machines) {
      machine.cut.clear();
      machine.isDiskFull = false;
      // Not before: what was sent to it until now is no news to it.
      this.#world.goOn(machine.process);
    }
    for (let number = 1; number <= controlsMax; number++) {
      const there = this.#controls.find(({ process }) => process.name === `control-${number}`);
      if (!there || there.process.ended) await this.#begin(`control-${number}`);
    }
    for (const { nodeId } of this.#machines) await setNodeStatus(this.#db, { nodeId, status: 'ready', changedAtUs: 0 });
    for (const { nodeId, isDestroyed } of this.#machines) if (isDestroyed) void this.#forget(nodeId);
  }

  /** An operator removes a machine that never comes back, once control knows that it is away. */
  async #forget(nodeId: string): Promise<void> {
    for (;;) {
      await this.#world.sleep(3000);
      const [control] = this.#controls;
      if (!control) continue;
      const forgotten = this.#world.as(control.process, () => forgetNode(control.parts, nodeId));
      if (await forgotten.catch(() => null)) return;
    }
  }

  #fail(why: string): never {
    const history = this.#trace.slice(-40).join('\n');
    throw new Violation(`seed ${this.#seed} at ${this.#world.nowMs} ms: ${why}\n${history}`, this.#plan.count);
  }

  /** What must hold at every moment. */
  #check(): void {
    const seen = new Map<string, string>();
    for (const machine of this.#machines.filter(({ isStopped }) => !isStopped))
      for (const { sandboxId, executionId, version } of machine.running.values()) {
        const { nodeId, still } = machine;
        if (still.has(executionId) || machine.isLate(executionId)) continue;
        const other = seen.get(sandboxId);
        if (other !== undefined) this.#fail(`I1: ${sandboxId} runs on ${other} and ${nodeId}`);
        if (this.#answers.killed.has(sandboxId)) this.#fail(`I2: ${sandboxId} was killed and runs on ${nodeId}`);
        if (version < (this.#answers.kept.get(sandboxId) ?? 0)) this.#fail(`I3: ${sandboxId} runs as it once was`);
        seen.set(sandboxId, nodeId);
      }
  }

  /** What must hold once everything has healed. */
  async #checkAll(): Promise<void> {
    const rows = await sandboxesIn(this.#db, sandboxStates);
    const at = new Map(this.#machines.map(machine => [machine.nodeId, machine]));
    for (const row of rows) {
      const { sandboxId, executionId, state, nodeId, durability } = row;
      const machine = at.get(nodeId);
      if (state !== 'running' && state !== 'paused') this.#fail(`I5: ${sandboxId} is still ${state}`);
      const isThere = machine?.[state].has(executionId);
      if (!isThere && !(state === 'paused' && durability === 'cluster'))
        this.#fail(`I12: ${sandboxId} is ${state} and not on ${nodeId}`);
      for (const { process, parts } of this.#controls)
        if (parts.directory.find(sandboxId)?.executionId !== executionId)
          this.#fail(`I12: ${process.name} has another route of ${sandboxId}`);
    }
    const executions = new Set(rows.map(({ executionId }) => executionId));
    for (const { nodeId, running, paused } of this.#machines)
      for (const held of [...running.values(), ...paused.values()])
        if (!executions.has(held.executionId)) this.#fail(`I12: ${held.sandboxId} on ${nodeId} is nobody's`);
    for (const { nodeId } of this.#machines) {
      const there = rows.filter(row => row.nodeId === nodeId && row.state === 'running').length;
      if (there > roomOfEach) this.#fail(`I6: ${there} run on ${nodeId}, which has room for ${roomOfEach}`);
    }
    await this.#checkAnswers(new Set(rows.map(({ sandboxId }) => sandboxId)));
  }

  async #checkAnswers(there: ReadonlySet<string>): Promise<void> {
    const { created, condemned, killed, durable } = this.#answers;
    const ends = await this.#db.selectFrom('events').select(['subject_id', 'type']).execute();
    const told = new Set(ends.filter(({ type }) => type === 'sandbox.lifecycle.killed').map(row => row.subject_id));
    for (const sandboxId of created) {
      if (there.has(sandboxId) || condemned.has(sandboxId)) continue;
      if (!told.has(sandboxId)) this.#fail(`I2: ${sandboxId} is gone and nobody was told`);
      if (this.#machines.every(({ isDestroyed }) => !isDestroyed)) this.#fail(`I2: ${sandboxId} was lost`);
    }
    for (const sandboxId of killed) if (there.has(sandboxId)) this.#fail(`I2: ${sandboxId} was killed and is there`);
    for (const sandboxId of durable) if (!there.has(sandboxId)) this.#fail(`I3: ${sandboxId} was stored and is gone`);
  }

  /** What is in the store continues, wherever there is room. */
  async #resumeStored(): Promise<void> {
    const [control] = this.#controls;
    const stored = [...this.#answers.durable];
    if (!control) return;
    const refused: string[] = [];
    for (const sandboxId of stored) {
      const resumed = this.#world.as(control.process, () =>
        resumeTeamsSandbox(control.parts, this.#team, sandboxId, { seconds: 3600, memory: true }),
      );
      resumed.catch((error: unknown) => refused.push(withCause(error)));
    }
    await this.#world.run(faultyMs + healedMs + resumedMs, () => this.#check());
    // An earlier unanswered request may have completed.
    const isUnlucky = (text: string) => /no room|no slot|has room|that much left|is running already/.test(text);
    for (const text of refused) if (!isUnlucky(text)) this.#fail(`I3: what is stored is not resumed: ${text}`);
    const running = this.#machines.flatMap(machine => [...machine.running.values()]);
    const there = new Set(running.map(({ sandboxId }) => sandboxId));
    const resumed = stored.filter(sandboxId => there.has(sandboxId)).length;
    if (resumed + refused.length < stored.length) this.#fail(`I3: ${resumed} of ${stored.length} are resumed`);
  }
}

const isDone = () => true;

/** Fails with anything that is not a refusal by the product. */
function isRefusal(error: unknown): false {
  if (!(error instanceof AtollError)) throw error;
  return false;
}

const withCause = (error: unknown) =>
  error instanceof Error && error.cause ? `${String(error)} (${String(error.cause)})` : String(error);

function newRow(teamId: string, nodeId: string, nowUs: number): SandboxRecord {
  return {
    ...defaultOptions,
    sandboxId: newSandboxId(),
    executionId: newUuid(),
    teamId,
    nodeId,
    state: 'starting',
    templateId: 't',
    buildId: 'b',
    alias: null,
    agentVersion: '1',
    cpuCount: 1,
    memoryMiB: 512,
    diskMiB: 1024,
    createdAtUs: nowUs,
    startedAtUs: nowUs,
    endAtUs: nowUs,
    timeoutSeconds: 3600,
    secure: false,
    volumeMounts: [],
    kept: null,
    agentUnresponsive: false,
    durability: null,
    nextExecutionId: null,
    nextNodeId: null,
    replicaId: null,
  };
}
