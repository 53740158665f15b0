/** How far back the plots go, seconds. */
export const ranges = { '15m': 15 * 60, '1h': 3600, '6h': 6 * 3600, '24h': 24 * 3600 };
/** The name of a range. */
export type Range = keyof typeof ranges;
/** The time between two moments, in seconds of Unix time. */
export type Span = { from: number; to: number };

/** The metrics page's state in the URL: how far back from now, or from when to when. */
export type MetricsSearch = { range?: Range; from?: number; to?: number };

/** The shortest span shown, seconds. */
const spanSecondsMin = 30;

/** Reads the search part of a URL, which anybody may have written. */
export function readMetricsSearch(raw: Record<string, unknown>): MetricsSearch {
  const range = (Object.keys(ranges) as Range[]).find(name => name === raw['range']);
  const [from, to] = [raw['from'], raw['to']];
  const isSpan =
    typeof from === 'number' && typeof to === 'number' && Number.isSafeInteger(from) && Number.isSafeInteger(to);
  return { ...(range && { range }), ...(isSpan && from > 0 && to - from >= spanSecondsMin && { from, to }) };
}

/** A span of whole seconds around the selection, no shorter than allowed. */
export function spanOf(from: number, to: number): Span {
  const missing = Math.max(0, spanSecondsMin - (to - from));
  return { from: Math.floor(from - missing / 2), to: Math.ceil(to + missing / 2) };
}

/** Ways to another span without drawing: moved by half of it, or halved or doubled. */
export const moves: Record<'Earlier' | 'Later' | 'Closer' | 'Wider', (span: Span) => Span> = {
  Earlier: ({ from, to }) => spanOf(from - (to - from) / 2, to - (to - from) / 2),
  Later: ({ from, to }) => spanOf(from + (to - from) / 2, to + (to - from) / 2),
  Closer: ({ from, to }) => spanOf(from + (to - from) / 4, to - (to - from) / 4),
  Wider: ({ from, to }) => spanOf(from - (to - from) / 2, to + (to - from) / 2),
};
