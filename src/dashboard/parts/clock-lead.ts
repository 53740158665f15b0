/** Smaller differences come from the header field itself, which has whole seconds, and from its way here, ms. */
const leadMin = 3_000;

/**
 * How far the platform's clock is ahead of this machine's, ms: computed from an answer's `Date` field and from the
 * times of the request and the answer. Zero if they agree, or without the field.
 */
export function leadOf(date: string | null, askedMs: number, cameMs: number): number {
  const lead = Date.parse(date ?? '') + 500 - (askedMs + cameMs) / 2;
  return Number.isNaN(lead) || Math.abs(lead) < leadMin + (cameMs - askedMs) / 2 ? 0 : Math.round(lead);
}
