/** Differences below are those of the field itself, which has whole seconds, and of its way here, ms. */
const leadMin = 3_000;

/**
 * By how much the clock of the platform is ahead of this machine's, ms: by the `Date` field of an answer, and by when
 * it was asked for and came here. Zero where they agree, or nothing is told.
 */
export function leadOf(date: string | null, askedMs: number, cameMs: number): number {
  const lead = Date.parse(date ?? '') + 500 - (askedMs + cameMs) / 2;
  return Number.isNaN(lead) || Math.abs(lead) < leadMin + (cameMs - askedMs) / 2 ? 0 : Math.round(lead);
}
