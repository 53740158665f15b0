import { sql } from 'kysely';
import { AtollError } from '../../base/error.ts';
import type { Db } from './db.ts';

/** How long an answer holds for others who ask: whoever asks without end makes no more work than this. */
const freshMs = 1_000;
/** A database that takes longer for nothing does not answer. */
const answerMs = 2_000;

/** Whether what the API stands on answers. */
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
      // Whoever waits hears it; nobody may.
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
