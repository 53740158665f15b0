import { AtollError } from '../../base/error.ts';

/** Outcomes of creates and forks on each machine since the platform started. For operators. */
export class CreateCounts {
  readonly #counts = new Map<string, { successes: number; fails: number }>();

  of(nodeId: string): { successes: number; fails: number } {
    return this.#counts.get(nodeId) ?? { successes: 0, fails: 0 };
  }

  count(nodeId: string, outcome: 'successes' | 'fails'): void {
    const counts = this.of(nodeId);
    this.#counts.set(nodeId, { ...counts, [outcome]: counts[outcome] + 1 });
  }

  /** Counts a failure with `error` against the machine, unless the caller is at fault. */
  countFailed(nodeId: string, error: unknown): void {
    if (!(error instanceof AtollError) || error.status >= 500) this.count(nodeId, 'fails');
  }
}
