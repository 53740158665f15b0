/** How far back the plots go, seconds. */
export const ranges = { '15m': 15 * 60, '1h': 3600, '6h': 6 * 3600, '24h': 24 * 3600 };
/** The name of a range. */
export type Range = keyof typeof ranges;

/** What the URL says of the metrics page. */
export type MetricsSearch = { range?: Range };

/** Reads the search of a URL that anybody may have written. */
export function readMetricsSearch(raw: Record<string, unknown>): MetricsSearch {
  const range = (Object.keys(ranges) as Range[]).find(name => name === raw['range']);
  return range ? { range } : {};
}
