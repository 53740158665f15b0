import { AtollError } from '../../../../base/error.ts';

/** How long a first call waits for a process, and how long a later one does that comes when it should long be there. */
type Waits = { startMs: number; laterMs: number };

/**
 * That a process serves for the first time. Whoever needs it waits for that, but not for ever: what keeps it from its
 * start may be gone by the next call.
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

  /** It serves, or has served. */
  succeed(): void {
    this.#hasServed = true;
    this.#served.resolve();
  }

  /** An attempt has failed; the next one may not. */
  fail(reason: string): void {
    this.#reason = reason;
  }

  /** Fails with `unavailable`, and what kept the last attempt from it, where it does not serve in time. */
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
