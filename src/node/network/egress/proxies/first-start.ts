import { AtollError } from '../../../../base/error.ts';

/**
 * How long the first call waits for a process, and how long a later call waits, when the process should long be there.
 */
type Waits = { startMs: number; laterMs: number };

/**
 * Waits until a process serves for the first time, but not for ever: what keeps it from starting may be gone by the
 * next call.
 */
export class FirstStart {
  readonly #served = Promise.withResolvers<void>();
  readonly #from = performance.now();
  readonly #waits: Waits;
  #hasServed = false;
  #reason = '';

  constructor(waits: Waits) {
    this.#waits = waits;
  }

  /** The process serves, or has served. */
  succeed(): void {
    this.#hasServed = true;
    this.#served.resolve();
  }

  /** An attempt has failed; the next one may succeed. */
  fail(reason: string): void {
    this.#reason = reason;
  }

  /** Fails with `unavailable` and the reason of the last failed attempt if the process does not serve in time. */
  async wait(): Promise<void> {
    if (this.#hasServed) return;
    const late = Promise.withResolvers<void>();
    const waitMs = Math.max(this.#waits.startMs - (performance.now() - this.#from), this.#waits.laterMs);
    const timer = setTimeout(late.resolve, waitMs);
    await Promise.race([this.#served.promise, late.promise]);
    clearTimeout(timer);
    if (this.#hasServed) return;
    const why = this.#reason === '' ? '' : `: ${this.#reason}`;
    throw new AtollError('unavailable', `the egress proxy did not start in time${why}`);
  }
}
