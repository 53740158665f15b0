/** A text as a page's field has it: each line ends with a single line feed. */
export const withPlainEnds = (text: string): string => text.replaceAll(/\r\n?/g, '\n');

/** The lines of a text, and the end of each; the last line has none. */
function linesOf(text: string): { lines: string[]; ends: string[] } {
  const parts = text.split(/(\r\n|\r|\n)/);
  return { lines: parts.filter((_, at) => at % 2 === 0), ends: parts.filter((_, at) => at % 2 === 1) };
}

/** The line end that most lines have. */
function usualEnd(ends: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const end of ends) counts.set(end, (counts.get(end) ?? 0) + 1);
  return [...counts].toSorted(([, one], [, other]) => other - one)[0]?.[0] ?? '\n';
}

/**
 * The edited text of a field, with the line ends of the original text: untouched lines keep theirs, and new ones get
 * the most frequent.
 */
export function withEndsOf(before: string, text: string): string {
  const { lines: was, ends } = linesOf(before);
  const usual = usualEnd(ends);
  const now = text.split('\n');
  const least = Math.min(was.length, now.length);
  let same = 0;
  while (same < least && was[same] === now[same]) same++;
  let sameBelow = 0;
  while (sameBelow < least - same && was.at(-1 - sameBelow) === now.at(-1 - sameBelow)) sameBelow++;
  const endOf = (at: number) => {
    // The changed part has as many lines as before: each was changed in its place.
    if (at < same || now.length === was.length) return ends[at];
    return at >= now.length - sameBelow ? ends[at - now.length + was.length] : usual;
  };
  return now.map((line, at) => (at === now.length - 1 ? line : line + (endOf(at) ?? usual))).join('');
}
