import { AtollError } from '../../../base/error.ts';
import { kernelLacks, kernelUses } from './link-verdicts.ts';

/**
 * Longest wait for rules that somebody has removed. They are checked every second, and nft takes some tenths of a
 * second, or several times that on a busy machine.
 */
const backTimeoutMs = 5_000;

/** Counts how often a table of packet rules was put in place, for work that fails while somebody has removed it. */
export class Placings {
  readonly #areThere: () => boolean;
  readonly #timeoutMs: number;
  #begun = 0;
  #last = 0;
  #underWay = 0;
  #present = Promise.resolve();
  #next = Promise.withResolvers<void>();

  /** `areThere`: whether the rules are in force. */
  constructor(areThere: () => boolean, timeoutMs = backTimeoutMs) {
    this.#areThere = areThere;
    this.#timeoutMs = timeoutMs;
  }

  /** The number of the last placing that has begun. */
  get begun(): number {
    return this.#begun;
  }

  /** The number of the last placing that has ended; 0: none has. */
  get last(): number {
    return this.#last;
  }

  /** Settles when the present placing has ended, whether it failed or not. */
  get present(): Promise<void> {
    return this.#present;
  }

  /** Puts the table in place. */
  async place(work: () => Promise<void>): Promise<void> {
    const number = ++this.#begun;
    const done = work();
    this.#underWay++;
    this.#present = done.catch(() => {}); // the caller of `place` gets the error
    await done.finally(() => this.#underWay--);
    this.#last = number;
    this.#next.resolve();
    this.#next = Promise.withResolvers<void>();
  }

  /**
   * Takes something out of the table. Whether somebody has removed the table is checked only if this fails, because
   * every end of a sandbox comes through here. The table may have been put back just now, with what refers to the
   * object: whoever puts it back takes out both.
   */
  takeOut(work: () => void): void {
    if (this.#last === 0) return;
    try {
      this.#unlessInUse(work);
    } catch (error) {
      if (!kernelLacks(error)) throw error;
      if (this.#areThere()) this.#unlessInUse(work);
    }
  }

  #unlessInUse(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (this.#underWay === 0 || !kernelUses(error)) throw error;
    }
  }

  /** Does work that fails without the rules; see `PolicyTable`. */
  async whenThere<T>(work: () => T | Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#timeoutMs;
    for (;;) {
      const [last, back] = [this.#last, this.#next.promise];
      try {
        return await work();
      } catch (error) {
        // They may have come back since it failed, or may be there already before the placing has ended.
        const isComing = this.#underWay > 0;
        if (last === 0 || (last === this.#last && !isComing && this.#areThere())) throw error;
        await inTime(isComing ? this.#present : back, deadline, error);
      }
    }
  }
}

async function inTime(back: Promise<void>, deadline: number, cause: unknown): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () =>
      late.reject(
        new AtollError('unavailable', 'The packet rules of this machine were removed and are not back yet', {
          retryAfterSeconds: 2,
          cause,
        }),
      ),
    Math.max(deadline - performance.now(), 0),
  );
  await Promise.race([back, late.promise]).finally(() => clearTimeout(timer));
}
