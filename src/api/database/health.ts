import { sql } from 'kysely';
import { AtollError } from '../../base/error.ts';
import type { Db } from './db.ts';

/** How long an answer is reused, ms: a flood of requests makes no more work than this. */
const freshMs = 1_000;
/** A database that needs longer for a trivial query does not answer. */
const answerMs = 2_000;

/** Checks whether the parts that the API depends on answer. */
export class Health {
  readonly #db: Db;
  #last: { readonly atMs: number; readonly outcome: Promise<void> } | null = null;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Throws `unavailable` naming the part that does not answer. */
  async check(): Promise<void> {
    const nowMs = performance.now();
    if (this.#last === null || nowMs - this.#last.atMs > freshMs) {
      const outcome = this.#askDatabase();
      // The waiting callers get the error, if there are any.
      outcome.catch(() => {});
      this.#last = { atMs: nowMs, outcome };
    }
    await this.#last.outcome;
  }

  async #askDatabase(): Promise<void> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error('it took too long')), answerMs);
    try {
      await Promise.race([sql`select 1`.execute(this.#db), late]);
    } catch (cause) {
      throw new AtollError('unavailable', 'database: does not answer', {
        detail: 'database_unavailable',
        retryAfterSeconds: 2,
        cause,
      });
    } finally {
      clearTimeout(timer);
    }
  }
}
