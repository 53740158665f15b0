import type { Outcome } from '../../simulation/support/simulate.ts';

/** The combined result of clusters: the sums of their figures. */
export type Sums = Pick<Outcome, 'answered' | 'moves' | 'databaseFaults'>;

/** Adds figures up. */
export function sumOf(parts: readonly Sums[]): Sums {
  const sums: Sums = { answered: 0, moves: 0, databaseFaults: 0 };
  for (const part of parts) for (const key of ['answered', 'moves', 'databaseFaults'] as const) sums[key] += part[key];
  return sums;
}
