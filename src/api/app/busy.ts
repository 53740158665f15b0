/** Executions on which workflows of this process work. Several may at a time: each adds itself and takes itself away. */
export class BusyExecutions {
  readonly #counts = new Map<string, number>();

  add(executionId: string): void {
    this.#counts.set(executionId, (this.#counts.get(executionId) ?? 0) + 1);
  }

  delete(executionId: string): void {
    const left = (this.#counts.get(executionId) ?? 0) - 1;
    if (left > 0) this.#counts.set(executionId, left);
    else this.#counts.delete(executionId);
  }

  has(executionId: string): boolean {
    return this.#counts.has(executionId);
  }

  /** Runs `work` with the execution marked. To be begun before the store says that anything is under way. */
  async while<T>(executionId: string, work: () => Promise<T>): Promise<T> {
    this.add(executionId);
    try {
      return await work();
    } finally {
      this.delete(executionId);
    }
  }
}
