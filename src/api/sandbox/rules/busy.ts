/** Executions on which workflows of this process work. Several may work on one at a time. */
export class BusyExecutions {
  /** This process, as named in the rows that it works on. */
  readonly replicaId: string;
  readonly #counts = new Map<string, number>();
  readonly #watches = new Set<Set<string>>();

  constructor(replicaId: string) {
    this.replicaId = replicaId;
  }

  /** Whether a workflow of this process works on an execution. */
  has(executionId: string): boolean {
    return this.#counts.has(executionId);
  }

  /** Every execution that is worked on now, or until the answer is disposed of: rows read meanwhile may be outdated. */
  watch(): { has(executionId: string): boolean } & Disposable {
    const seen = new Set(this.#counts.keys());
    this.#watches.add(seen);
    return { has: executionId => seen.has(executionId), [Symbol.dispose]: () => void this.#watches.delete(seen) };
  }

  /** Runs `work` with the execution marked. Call it before the store says that anything is under way. */
  async while<T>(executionId: string, work: () => Promise<T>): Promise<T> {
    this.#counts.set(executionId, (this.#counts.get(executionId) ?? 0) + 1);
    for (const seen of this.#watches) seen.add(executionId);
    try {
      return await work();
    } finally {
      const left = (this.#counts.get(executionId) ?? 0) - 1;
      if (left > 0) this.#counts.set(executionId, left);
      else this.#counts.delete(executionId);
    }
  }
}
