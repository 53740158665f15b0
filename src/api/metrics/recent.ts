/** How something ended: as wanted, refused with a reason, or failed through no fault of the caller's. */
export type Outcome = 'ok' | 'refused' | 'failed';

/** How far back creates are reported, s. */
export const recentSeconds = 3_600;
/** The most creates to remember: if there are more within the hour, the newest. */
const createsMax = 20_000;

type Create = { atMs: number; seconds: number | null; cause: string | null };

/** The last run of a reconciler. */
type Round = { name: string; atMs: number; ok: boolean; runs: number; failures: number; failedAtMs: number | null };

/**
 * Creates of the last hour: how many succeeded and failed, and the median and the 99th percentile of their durations.
 */
type RecentCreates = {
  succeeded: number;
  failed: number;
  p50Seconds: number | null;
  p99Seconds: number | null;
  /** The causes of the failures, the most frequent first. */
  causes: Array<{ cause: string; count: number }>;
};

/** The value that a share of sorted values does not exceed, by nearest rank; null where there are none. */
function percentile(sorted: readonly number[], share: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;
}

/** What this process has done lately, for the operator's first page; it starts empty with the process. */
export class Recent {
  readonly #creates: Create[] = [];
  readonly #rounds = new Map<string, Round>();

  /** Counts a create that ended after `seconds`. A refused one says nothing about the health of this process. */
  created(outcome: Outcome, seconds: number, atMs: number, cause: string | null = null): void {
    if (outcome === 'refused') return;
    this.#creates.push({ atMs, seconds: outcome === 'ok' ? seconds : null, cause });
    this.#forget(atMs);
  }

  /** Counts a round of a reconciler that has ended. */
  reconciled(name: string, outcome: 'ok' | 'failed', atMs: number): void {
    const before = this.#rounds.get(name);
    const ok = outcome === 'ok';
    this.#rounds.set(name, {
      name,
      atMs,
      ok,
      runs: (before?.runs ?? 0) + 1,
      failures: (before?.failures ?? 0) + (ok ? 0 : 1),
      failedAtMs: ok ? (before?.failedAtMs ?? null) : atMs,
    });
  }

  creates(nowMs: number): RecentCreates {
    this.#forget(nowMs);
    const took = this.#creates.flatMap(({ seconds }) => (seconds === null ? [] : [seconds])).sort((a, b) => a - b);
    return {
      succeeded: took.length,
      failed: this.#creates.length - took.length,
      p50Seconds: percentile(took, 0.5),
      p99Seconds: percentile(took, 0.99),
      causes: this.#causes(),
    };
  }

  rounds(): Round[] {
    return [...this.#rounds.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  #causes(): RecentCreates['causes'] {
    const counts = new Map<string, number>();
    for (const { seconds, cause } of this.#creates)
      if (seconds === null) counts.set(cause ?? 'internal', (counts.get(cause ?? 'internal') ?? 0) + 1);
    return [...counts].map(([cause, count]) => ({ cause, count })).sort((a, b) => b.count - a.count);
  }

  #forget(nowMs: number): void {
    const first = this.#creates.findIndex(({ atMs }) => atMs > nowMs - recentSeconds * 1_000);
    const old = first < 0 ? this.#creates.length : first;
    const over = Math.max(old, this.#creates.length - createsMax);
    if (over > 0) this.#creates.splice(0, over);
  }
}
