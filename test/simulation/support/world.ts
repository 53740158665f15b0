import { AsyncLocalStorage } from 'node:async_hooks';
import { randomOf } from '../../api/random.ts';

/** A process of the simulation. One that has ended hears nothing more; one that is stopped hears all of it later. */
export class Process {
  readonly name: string;
  stoppedUntilMs = 0;
  ended = false;
  readonly #over = Promise.withResolvers<void>();

  constructor(name: string) {
    this.name = name;
  }

  get over(): Promise<void> {
    return this.#over.promise;
  }

  end(): void {
    this.ended = true;
    this.#over.resolve();
  }
}

/**
 * What clients and faults do, drawn apart from how long things take, so that leaving some of it out changes little of
 * the rest. Actions are numbered in the order in which they come.
 */
export class Plan {
  readonly #seed: number;
  readonly #leftOut: ReadonlySet<number>;
  /** How many actions there were so far, those that were left out included. */
  count = 0;

  constructor(seed: number, leftOut: ReadonlySet<number>) {
    this.#seed = seed;
    this.#leftOut = leftOut;
  }

  /** Chance of the actor with that number: what others do does not change it. */
  actor(number: number): Chance {
    return new Chance(this.#seed + 1_000_003 * (number + 1));
  }

  /** Whether the next action is to be done. */
  next(): boolean {
    return !this.#leftOut.has(this.count++);
  }
}

/** Chance that a seed decides. */
export class Chance {
  readonly random: () => number;

  constructor(seed: number) {
    this.random = randomOf(seed);
  }

  /** A whole number of that range, both ends included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.random() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.random() * items.length)];
  }
}

/** Time, chance, and whose turn it is: all that happens is decided by the seed. */
export class World extends Chance {
  readonly #current = new AsyncLocalStorage<Process>();
  /** `stopped`: the process that stands still until then. */
  readonly #waiting: { atMs: number; order: number; resolve: () => void; stopped?: Process }[] = [];
  nowMs = 0;

  /** Runs `work` as a process: what it waits for does not come true once that has ended. */
  as<T>(process: Process, work: () => T): T {
    return this.#current.run(process, work);
  }

  /** Undefined outside of all processes. */
  get turn(): Process | undefined {
    return this.#current.getStore();
  }

  get current(): Process {
    const process = this.turn;
    if (!process) throw new Error('nobody’s turn');
    return process;
  }

  /** Waits as the present process does. */
  async sleep(ms: number): Promise<void> {
    const process = this.current;
    await this.#until(this.nowMs + ms);
    while (process.stoppedUntilMs > this.nowMs && !process.ended) await this.#until(process.stoppedUntilMs, process);
    if (process.ended) await new Promise<never>(() => {});
  }

  /** Lets a process that stands still go on: what it was to hear meanwhile comes first, and not when it would have. */
  goOn(process: Process): void {
    process.stoppedUntilMs = Math.min(process.stoppedUntilMs, this.nowMs);
    for (const waiting of this.#waiting) if (waiting.stopped === process) waiting.atMs = this.nowMs;
  }

  /** Lets time go by until then; all that is due happens one after the other. */
  async run(untilMs: number, check: () => Promise<void> | void): Promise<void> {
    await turn();
    for (;;) {
      const next = this.#waiting.reduce<number>((best, each, index) => {
        const other = this.#waiting[best];
        const isSooner = !other || each.atMs < other.atMs || (each.atMs === other.atMs && each.order < other.order);
        return isSooner ? index : best;
      }, -1);
      const due = this.#waiting[next];
      if (!due || due.atMs > untilMs) break;
      this.#waiting.splice(next, 1);
      this.nowMs = Math.max(this.nowMs, due.atMs);
      due.resolve();
      await turn();
      await check();
    }
    this.nowMs = untilMs;
  }

  #until(atMs: number, stopped?: Process): Promise<void> {
    const order = this.random();
    return new Promise(resolve => this.#waiting.push({ atMs, order, resolve, ...(stopped && { stopped }) }));
  }
}

/** All that can go on without waiting has gone on. */
const turn = () => new Promise<void>(resolve => void setImmediate(resolve));
