const day = 24 * 3600;

/** How far back usage is shown, seconds. */
export const usageRanges = { '24h': day, '7d': 7 * day, '30d': 30 * day, '90d': 90 * day, '400d': 400 * day } as const;
/** A range of usage. */
export type UsageRange = keyof typeof usageRanges;

/** The usage page's state in the URL. */
export type UsageSearch = { range?: UsageRange };

/** Reads the search part of a URL, which anybody may have written. */
export function readUsageSearch(raw: Record<string, unknown>): UsageSearch {
  const range = (Object.keys(usageRanges) as UsageRange[]).find(one => one === raw['range']);
  return range ? { range } : {};
}
