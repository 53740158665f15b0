/** Length of the facts of one side of a change, as JSON, up to which they are kept as they are. */
const factsCharactersMax = 4096;
/** What is kept of each list and text where they are longer. */
const partCharactersMax = 1000;

type Facts = Record<string, unknown>;

/**
 * What an entry of the audit log keeps of the facts of a change: entries are bounded by number, and callers decide how
 * long lists of destinations are. Of long ones it has the first members, and how many more there were.
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
