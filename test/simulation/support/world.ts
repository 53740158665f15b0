import { AsyncLocalStorage } from 'node:async_hooks';
import { randomOf } from '../../api/random.ts';

/** A process of the simulation. An ended process hears nothing more; a stopped one hears everything later. */
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
 * What clients and faults do, drawn separately from how long things take, so that leaving some of it out changes little
 * of the rest. Actions are numbered in the order in which they come.
 */
export class Plan {
  readonly #seed: number;
  readonly #leftOut: ReadonlySet<number>;
  /** How many actions there were so far, including those left out. */
  count = 0;

  constructor(seed: number, leftOut: ReadonlySet<number>) {
    this.#seed = seed;
    this.#leftOut = leftOut;
  }

  /** The random source of the actor with that number: what others do does not change it. */
  actor(number: number): Chance {
    return new Chance(this.#seed + 1_000_003 * (number + 1));
  }

  /** Whether to do the next action. */
  next(): boolean {
    return !this.#leftOut.has(this.count++);
  }
}

/** Randomness determined by a seed. */
export class Chance {
  readonly random: () => number;

  constructor(seed: number) {
    this.random = randomOf(seed);
  }

  /** A whole number of that range, including both ends. */
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

/** Time, randomness, and turns: the seed decides everything that happens. */
export class World extends Chance {
  readonly #current = new AsyncLocalStorage<Process>();
  /** `stopped`: the process that stands still until then. */
  readonly #waiting: { atMs: number; order: number; resolve: () => void; stopped?: Process }[] = [];
  nowMs = 0;

  /** Runs `work` as a process: after the process has ended, nothing that it waits for happens. */
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

  /** Waits as the current process. */
  async sleep(ms: number): Promise<void> {
    const process = this.current;
    await this.#until(this.nowMs + ms);
    while (process.stoppedUntilMs > this.nowMs && !process.ended) await this.#until(process.stoppedUntilMs, process);
    if (process.ended) await new Promise<never>(() => {});
  }

  /** Lets a stopped process go on: first it hears what it missed, and not at the original times. */
  goOn(process: Process): void {
    process.stoppedUntilMs = Math.min(process.stoppedUntilMs, this.nowMs);
    for (const waiting of this.#waiting) if (waiting.stopped === process) waiting.atMs = this.nowMs;
  }

  /** Lets time pass until then; everything due happens one after another. */
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

/** Lets everything continue that can go on without waiting. */
const turn = () => new Promise<void>(resolve => void setImmediate(resolve));
