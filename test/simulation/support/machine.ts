import { AtollError } from '../../../src/base/error.ts';
import { silentLog } from '../../../src/base/telemetry/log.ts';
import { platformVersion } from '../../../src/base/version.ts';
import { Gate } from '../../../src/gate/gate.ts';
import { type GateMemory, requireLease } from '../../../src/gate/gate-memory.ts';
import type { DraftRef, Machine, PauseFacts } from '../../../src/protocol/cluster.ts';
import type {
  CreateSandbox,
  ExecutionRef,
  MemoryFacts,
  NodeInfo,
  NodeSandbox,
  PausedSandbox,
  ResumeSandbox,
} from '../../../src/protocol/node.ts';
import { Process, type World } from './world.ts';

/** A sandbox at one moment: how often its state was saved so far. A loss shows as a lower number. */
type Held = ExecutionRef & { version: number };

const resources = { cpuCount: 1, memoryMiB: 512, diskMiB: 1024 };
const restores: MemoryFacts = { architecture: 'x86_64', kernel: '6.1.0', criu: '4.2', cpuFlags: [], agent: 'a' };
/** How often the gate checks whether control is there, ms: less often than a real one. */
const tickMs = 1000;
/** Control examines a reconnected machine within this time, ms. */
const lookedThroughMs = 15_000;
/** Largest error of a machine's clock, thousandths. */
const driftMax = 10;

/** The data of a connection, by its descriptor. */
export const carriedKey = (descriptor: number) => `connection ${descriptor}`;

/** A machine that hosts sandboxes: they are only names, and everything that happens to them takes time. */
export class SimMachine {
  readonly nodeId: string;
  readonly running = new Map<string, Held>();
  readonly paused = new Map<string, Held>();
  readonly setAsides = new Map<string, Held>();
  readonly withdrawn = new Set<string>();
  /** IDs of the drafts on this machine. */
  readonly #drafts = new Set<string>();
  /** Sandboxes being paused: a real one stands still from the start of its pause. */
  readonly still = new Set<string>();
  /** Control processes that it can't hear, and that can't hear it. */
  readonly cut = new Set<string>();
  /** Its disk accepts nothing more. */
  isDiskFull = false;
  isDestroyed = false;
  /** Until then, it may continue something that it does not know to be over. */
  #isBehindUntilMs = 0;
  /** When the call that it is handling was sent. */
  #takenSentMs = 0;
  /** Executions that began meanwhile, or whose earlier start control may not know. */
  readonly #late = new Set<string>();
  process: Process;
  gate: Gate;
  readonly #world: World;
  readonly #objects: Map<string, Held>;
  readonly #writes = new Map<string, ExecutionRef>();
  readonly #turns = new Map<string, Promise<unknown>>();
  #heard: ReturnType<GateMemory['recall']>;
  /** Its clock began at another time than others, and is a little faster or slower. */
  readonly #clock: { startMs: number; rate: number };
  readonly #memory: GateMemory = { recall: () => this.#heard, keep: heard => void (this.#heard = heard) };

  constructor(world: World, nodeId: string, objects: Map<string, Held>) {
    this.#world = world;
    this.nodeId = nodeId;
    this.#objects = objects;
    this.process = new Process(nodeId);
    this.#clock = { startMs: world.between(0, 1e9), rate: 1 + world.between(-driftMax, driftMax) / 1000 };
    this.gate = this.#start();
  }

  /**
   * It stands still with all its sandboxes, as a virtual machine does, and perhaps its clock too. `known`: the
   * executions that control knows to run here.
   */
  standStill(ms: number, withClock: boolean, known: ReadonlySet<string>): void {
    this.process.stoppedUntilMs = this.#world.nowMs + ms;
    for (const executionId of this.running.keys()) if (!known.has(executionId)) this.#late.add(executionId);
    if (withClock) {
      this.#clock.startMs -= ms;
      this.#isBehindUntilMs = Number.POSITIVE_INFINITY;
    } else this.#isBehindUntilMs = Math.max(this.#isBehindUntilMs, this.process.stoppedUntilMs + tickMs);
  }

  /**
   * What was in transit to a machine that stood still with its clock may begin when the machine goes on, until it hears
   * control, and run until control has examined the machine; so may what had begun there unknown to control. On a
   * machine whose clock went on, such a sandbox runs until the machine's gate has looked at the clock. docs/cluster.md
   * says so.
   */
  isLate(executionId: string): boolean {
    return this.#late.has(executionId) && this.#isBehindUntilMs > this.#world.nowMs;
  }

  get isStopped(): boolean {
    return this.process.stoppedUntilMs > this.#world.nowMs;
  }

  /** Its platform ends and starts again; its sandboxes run on, and what it was doing is left undone. */
  restart(): void {
    this.process.end();
    this.process = new Process(this.nodeId);
    this.#turns.clear();
    this.#writes.clear();
    this.#drafts.clear();
    this.still.clear();
    this.gate = this.#start();
  }

  destroy(): void {
    this.process.end();
    this.isDestroyed = true;
    for (const held of [this.running, this.paused, this.setAsides]) held.clear();
  }

  #uptimeMs(): number {
    return this.#clock.startMs + this.#world.nowMs * this.#clock.rate;
  }

  #start(): Gate {
    const { node } = this.service;
    const said = { bootId: 'b', release: platformVersion, cpuOvercommit: 4 };
    const gate = new Gate({ node, log: silentLog, memory: this.#memory, nowMs: () => this.#uptimeMs(), ...said });
    void this.#world.as(this.process, async () => {
      for (;;) {
        await this.#world.sleep(tickMs);
        await gate.tick();
      }
    });
    return gate;
  }

  /** Its service: a part of the real ones, as the rest of control calls them. */
  readonly service = this.#service();

  #service(): Pick<Machine, 'node' | 'pauses' | 'drafts' | 'transfers' | 'gate'> {
    const node = {
      info: async () => this.#info(),
      create: async (request: CreateSandbox) => this.#leased(() => this.#create(request)),
      kill: (target: ExecutionRef) => this.#kill(target),
      withdraw: (target: ExecutionRef) => this.#withdraw(target),
      list: async () => [...this.running.values()].map(held => this.#view(held)),
      listPaused: async () => [...this.paused.values()].map(held => this.#pausedView(held)),
      listSetAside: async () =>
        [...this.setAsides.values()].map(({ sandboxId }) => ({ sandboxId, known: null, sinceMs: 0, reason: '' })),
      memoryAbility: async () => ({ kept: true as const }),
      pause: (target: ExecutionRef, { memory }: { memory: boolean }) => this.#pause(target, memory),
      resume: async (request: ResumeSandbox) => this.#leased(() => this.#resume(request)),
      setAside: async (target: ExecutionRef) => this.#setAside(target),
      updateNetwork: async ({ executionId }: ExecutionRef) => {
        if (!this.running.has(executionId)) throw gone();
      },
    };
    const pauses = {
      describe: async (target: ExecutionRef) => this.#describe(target),
      openRead: async (target: ExecutionRef) => this.#openRead(target),
      openWrite: async (target: ExecutionRef) => this.#leased(async () => this.#openWrite(target)),
      dropWrite: async (writeId: string) => void this.#writes.delete(writeId),
      keepWrite: async (writeId: string) => this.#keepWrite(writeId),
    };
    const drafts = {
      describe: (draft: DraftRef) => this.#draft(draft),
      openRead: async () => ({ sizeBytes: 1, descriptor: this.#world.between(1, 2 ** 31) }),
      openRest: async (draft: DraftRef) => {
        if (!this.#drafts.has(draft.draftId)) throw gone();
        return this.#openRead(draft);
      },
      openWrite: pauses.openWrite as (draft: DraftRef) => Promise<unknown>,
      dropWrite: pauses.dropWrite,
      keepWrite: async (writeId: string) => void this.#drafts.add((this.#written(writeId) as DraftRef).draftId),
      drop: async ({ draftId }: DraftRef) => void this.#drafts.delete(draftId),
    };
    const transfers = {
      sendPause: (target: ExecutionRef, _key: string, urls: string[]) => this.#send(target, urls[0] ?? ''),
      receivePause: async (target: ExecutionRef, _key: string, _bytes: number, urls: string[]) =>
        this.#leased(() => this.#receive(target, urls[0] ?? '')),
    };
    const gate = {
      beat: async (beat: Parameters<Gate['beat']>[0]) => {
        // A call that was sent earlier is no news, and a clock that stood still can't reveal that.
        const isNews = this.#takenSentMs >= this.process.stoppedUntilMs;
        if (isNews && this.#isBehindUntilMs === Number.POSITIVE_INFINITY)
          this.#isBehindUntilMs = this.#world.nowMs + lookedThroughMs;
        return this.gate.beat(beat);
      },
    };
    return { node, pauses, drafts, transfers, gate } as never;
  }

  #leased<T>(work: () => Promise<T>): Promise<T> {
    return this.gate.underLease(work);
  }

  /** Only one thing at a time happens to a sandbox. */
  #inTurn<T>(sandboxId: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#turns.get(sandboxId) ?? Promise.resolve()).then(work, work);
    this.#turns.set(sandboxId, turn);
    return turn;
  }

  #takes(): Promise<void> {
    return this.#world.sleep(this.#world.chance(0.05) ? this.#world.between(1000, 8000) : this.#world.between(20, 400));
  }

  #requireSpace(): void {
    if (this.isDiskFull) throw new AtollError('no_space', 'its disk is full');
  }

  #info(): NodeInfo {
    return {
      nodeId: this.nodeId,
      cpuCount: 1,
      memoryBytes: 4 * 2 ** 30,
      sandboxCount: this.running.size,
      sandboxesMax: 100,
      driver: 'crun',
      memory: { kept: true },
      memoryByDriver: { crun: { kept: true } },
      restores,
    };
  }

  #view({ sandboxId, executionId }: Held): NodeSandbox {
    return { sandboxId, executionId, startedAtMs: 0, resources, diskFailed: false };
  }

  #pausedView({ sandboxId, executionId }: Held): PausedSandbox {
    return { sandboxId, executionId, kept: 'memory', pausedAtMs: 0 };
  }

  #create({ sandboxId, executionId }: CreateSandbox): Promise<NodeSandbox> {
    return this.#inTurn(sandboxId, async () => {
      await this.#takes();
      if (this.withdrawn.has(executionId)) throw tooLate();
      this.#requireSpace();
      this.#requireLease();
      const held = this.running.get(executionId) ?? { sandboxId, executionId, version: 0 };
      this.#begin(held);
      return this.#view(held);
    });
  }

  /** As a real node asks right before processes run. */
  #requireLease(): void {
    requireLease(this.#memory, this.#uptimeMs());
  }

  #begin(held: Held): void {
    this.running.set(held.executionId, held);
    if (this.#isBehindUntilMs === Number.POSITIVE_INFINITY) this.#late.add(held.executionId);
  }

  #kill({ sandboxId, executionId }: ExecutionRef): Promise<void> {
    return this.#inTurn(sandboxId, async () => {
      await this.#takes();
      this.running.delete(executionId);
      this.paused.delete(executionId);
    });
  }

  #withdraw({ sandboxId, executionId }: ExecutionRef): Promise<boolean> {
    return this.#inTurn(sandboxId, async () => {
      if (this.running.has(executionId) || this.paused.has(executionId)) return false;
      this.withdrawn.add(executionId);
      return true;
    });
  }

  #pause({ sandboxId, executionId }: ExecutionRef, memory: boolean): Promise<PausedSandbox> {
    return this.#inTurn(sandboxId, async () => {
      const known = this.paused.get(executionId);
      if (known) return this.#pausedView(known);
      if (!this.running.has(executionId)) throw gone();
      this.still.add(executionId);
      await this.#takes();
      this.still.delete(executionId);
      const running = this.running.get(executionId);
      if (!running) throw gone();
      // A gate ends a sandbox that can't be paused at all; a test of losses can't tell that from a fault.
      if (memory) this.#requireSpace();
      if (memory && this.#world.chance(0.05)) throw new AtollError('internal', 'its memory could not be kept');
      const held = { ...running, version: running.version + 1 };
      this.running.delete(executionId);
      this.paused.set(executionId, held);
      return this.#pausedView(held);
    });
  }

  #resume({ sandboxId, executionId, nextExecutionId }: ResumeSandbox): Promise<NodeSandbox & { from: 'memory' }> {
    return this.#inTurn(sandboxId, async () => {
      const known = this.running.get(nextExecutionId);
      if (known) return { ...this.#view(known), from: 'memory' };
      if (this.withdrawn.has(nextExecutionId)) throw tooLate();
      if (!this.paused.has(executionId)) throw gone();
      await this.#takes();
      if (this.#world.chance(0.05)) throw new AtollError('unavailable', 'there is no slot left');
      const paused = this.paused.get(executionId);
      if (!paused) throw gone();
      this.#requireLease();
      const held = { ...paused, executionId: nextExecutionId };
      this.paused.delete(executionId);
      this.#begin(held);
      return { ...this.#view(held), from: 'memory' };
    });
  }

  async #setAside({ executionId }: ExecutionRef): Promise<void> {
    const held = this.running.get(executionId) ?? this.paused.get(executionId);
    if (!held) return;
    this.running.delete(executionId);
    this.paused.delete(executionId);
    this.setAsides.set(executionId, held);
  }

  #describe({ executionId }: ExecutionRef): PauseFacts {
    if (!this.running.has(executionId) && !this.paused.has(executionId)) throw gone();
    return { kept: 'memory', sizeBytes: 1, layers: [], driver: 'crun', memory: restores };
  }

  async #openRead(target: ExecutionRef): Promise<{ sizeBytes: number; descriptor: number }> {
    const descriptor = this.#world.between(1, 2 ** 31);
    await this.#send(target, carriedKey(descriptor));
    return { sizeBytes: 1, descriptor };
  }

  #openWrite(target: ExecutionRef): { writeId: string; descriptor: number } {
    const descriptor = this.#world.between(1, 2 ** 31);
    this.#writes.set(`write ${descriptor}`, target);
    return { writeId: `write ${descriptor}`, descriptor };
  }

  async #keepWrite(writeId: string): Promise<PausedSandbox> {
    return this.#receive(this.#written(writeId), carriedKey(Number(writeId.split(' ')[1])));
  }

  #written(writeId: string): ExecutionRef {
    const target = this.#writes.get(writeId);
    if (!target || !this.#writes.delete(writeId)) throw gone();
    return target;
  }

  /** It stands still for a moment, and goes on. */
  #draft({ sandboxId, executionId, draftId }: DraftRef): Promise<PauseFacts> {
    return this.#inTurn(sandboxId, async () => {
      await this.#takes();
      if (!this.running.has(executionId)) throw gone();
      if (this.#world.chance(0.2)) throw new AtollError('unavailable', 'there is no room for a draft');
      this.#drafts.add(draftId);
      return this.#describe({ sandboxId, executionId });
    });
  }

  /** The sandbox keeps its turn until everything was sent. */
  #send({ sandboxId, executionId }: ExecutionRef, key: string): Promise<void> {
    return this.#inTurn(sandboxId, async () => {
      await this.#takes();
      const held = this.paused.get(executionId);
      if (!held) throw gone();
      if (this.#world.chance(0.05)) throw new AtollError('unavailable', 'the store is out of reach');
      this.#objects.set(key, held);
    });
  }

  async #receive({ sandboxId, executionId }: ExecutionRef, key: string): Promise<PausedSandbox> {
    await this.#takes();
    const held = this.#objects.get(key);
    if (!held) throw new AtollError('not_found', 'It is not in the store');
    this.#requireSpace();
    return this.#inTurn(sandboxId, async () => {
      const there = this.paused.get(executionId);
      if (there) return this.#pausedView(there);
      const all = [...this.running.values(), ...this.paused.values()];
      if (all.some(other => other.sandboxId === sandboxId))
        throw new AtollError('conflict', 'another execution is here');
      this.paused.set(executionId, held);
      return this.#pausedView(held);
    });
  }

  /** The machine as one control process reaches it: each call travels there and back, or is lost. */
  reachedFrom(caller: Process): Machine {
    let dropped = Promise.withResolvers<never>();
    dropped.promise.catch(() => {});
    const isCut = () => this.isDestroyed || this.process.ended || this.cut.has(caller.name);
    const lost = () => new AtollError('unavailable', 'the connection was lost');
    const call = async (work: () => Promise<unknown>): Promise<unknown> => {
      const world = this.#world;
      const sentMs = world.nowMs;
      const over = dropped.promise;
      await world.sleep(world.between(1, 20));
      if (isCut()) {
        await Promise.race([world.sleep(2000), over]);
        throw lost();
      }
      const process = this.process;
      const outcome = world
        .as(process, async () => {
          // A machine that stands still takes it when it goes on.
          await world.sleep(0);
          this.#takenSentMs = sentMs;
          return work();
        })
        .then(
          result => ({ result }),
          (error: unknown) => ({ error }),
        );
      const ended = process.over.then(() => ({ error: lost() }));
      const answer = await Promise.race([outcome, over, ended]);
      await world.sleep(world.between(1, 20));
      if (isCut()) throw lost();
      if ('error' in answer) throw answer.error;
      return answer.result;
    };
    const over = (table: object): object =>
      Object.fromEntries(
        Object.entries(table).map(([name, work]) => [
          name,
          (...args: unknown[]) => call(() => (work as (...args: unknown[]) => Promise<unknown>)(...args)),
        ]),
      );
    const { node, pauses, drafts, transfers, gate } = this.service;
    const drop = () => {
      dropped.reject(lost());
      dropped = Promise.withResolvers<never>();
      dropped.promise.catch(() => {});
    };
    return {
      node: over(node),
      pauses: over(pauses),
      drafts: over(drafts),
      transfers: over(transfers),
      gate: over(gate),
      layers: { missing: async () => [] },
      drop,
      close: drop,
    } as unknown as Machine;
  }
}

const tooLate = () => new AtollError('conflict', 'it was withdrawn');
const gone = () => new AtollError('not_found', 'it is not on this node');
