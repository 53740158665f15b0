/** Length of the facts of one side of a change, as JSON, up to which they are kept unchanged. */
const factsCharactersMax = 4096;
/** How much of each list and text is kept where the facts are longer. */
const partCharactersMax = 1000;

type Facts = Record<string, unknown>;

/**
 * The facts of a change that an audit entry keeps: entries are limited in number, but callers decide the length of
 * lists of destinations. Long lists are cut to their first members, with the number of the others.
 */
export function boundedFacts(facts: Facts | undefined): Facts | null {
  if (facts === undefined) return null;
  if (JSON.stringify(facts).length <= factsCharactersMax) return facts;
  return Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, boundedPart(value)]));
}

function boundedPart(value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, partCharactersMax);
  if (!Array.isArray(value)) return value;
  let left = partCharactersMax;
  const kept = value.findIndex(member => (left -= JSON.stringify(member).length) < 0);
  return kept < 0 ? value : [...value.slice(0, kept), `and ${value.length - kept} more`];
}
