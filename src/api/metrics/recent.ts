/** How something ended: as wanted, refused with the reason, or failed through no fault of the caller's. */
export type Outcome = 'ok' | 'refused' | 'failed';

/** What is told of creates goes back so far, s. */
export const recentSeconds = 3_600;
/** Creates that are remembered at most: of more within the hour, the newest. */
const createsMax = 20_000;

type Create = { atMs: number; seconds: number | null; cause: string | null };

/** A reconciler as it ran last. */
type Round = { name: string; atMs: number; ok: boolean; runs: number; failures: number; failedAtMs: number | null };

/** Creates of the last hour: how many succeeded and failed, and how long half of them and 99 of 100 took at most. */
type RecentCreates = {
  succeeded: number;
  failed: number;
  p50Seconds: number | null;
  p99Seconds: number | null;
  /** Why those that failed did, the most frequent first. */
  causes: Array<{ cause: string; count: number }>;
};

/** The value that a share of sorted values does not exceed, by nearest rank; null where there are none. */
function percentile(sorted: readonly number[], share: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;
}

/** What this process has done lately, for the operator's first page; it begins anew with the process. */
export class Recent {
  readonly #creates: Create[] = [];
  readonly #rounds = new Map<string, Round>();

  /** A create has ended after so long. One that was refused says nothing of how this process does. */
  created(outcome: Outcome, seconds: number, atMs: number, cause: string | null = null): void {
    if (outcome === 'refused') return;
    this.#creates.push({ atMs, seconds: outcome === 'ok' ? seconds : null, cause });
    this.#forget(atMs);
  }

  /** A round of a reconciler has ended. */
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
