import { AtollError } from '../../base/error.ts';

/**
 * Waits on behalf of one request: every wait ends when any of `signals` aborts. Disposal removes the listeners, because
 * some of those signals live long.
 */
export class Wait implements Disposable {
  readonly #controller = new AbortController();
  readonly #signals: readonly AbortSignal[];
  readonly #abort = () => this.#controller.abort();

  constructor(signals: readonly AbortSignal[]) {
    this.#signals = signals;
    for (const signal of signals) {
      if (signal.aborted) this.#abort();
      else signal.addEventListener('abort', this.#abort, { once: true });
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * The result of `promise`. Errors: its own, `canceled` when a signal aborts, `deadline_exceeded` after `timeoutMs`;
   * in the last two cases, a late result goes to `undo`.
   */
  async for<T>(promise: Promise<T>, timeoutMs: number, undo: (late: T) => void): Promise<T> {
    const { promise: end, resolve, reject } = Promise.withResolvers<T>();
    let isGivenUp = false;
    // Too late starts now: a result that arrives before the waiter hears of the error is late as well.
    const giveUp = (error: AtollError) => {
      isGivenUp = true;
      reject(error);
    };
    const timer = setTimeout(
      () => giveUp(new AtollError('deadline_exceeded', 'The connection took too long')),
      timeoutMs,
    );
    const canceled = () => giveUp(new AtollError('canceled', 'The request was given up'));
    if (this.signal.aborted) canceled();
    else this.signal.addEventListener('abort', canceled, { once: true });
    promise.then(value => (isGivenUp ? undo(value) : resolve(value)), reject);
    try {
      return await end;
    } finally {
      clearTimeout(timer);
      this.signal.removeEventListener('abort', canceled);
    }
  }

  /** Waits. Errors: `canceled` when a signal aborts. */
  async sleep(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    try {
      await this.for(promise, ms + 1000, () => {});
    } finally {
      clearTimeout(timer);
    }
  }

  [Symbol.dispose](): void {
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#abort);
  }
}
