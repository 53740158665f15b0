/** What a step of a build is called in its log: where it is, e.g. `builder 2/5`, and what it does. */
export type Label = { place?: string; text: string };

/** A line of the log about what a label names. */
export function lineOf({ place, text }: Label, said = text): string {
  return place === undefined ? said : `[${place}] ${said}`;
}

/** Characters of an instruction that are shown. */
const charactersMax = 200;
/** What of it is looked at: white space can be most of it. */
const lookedAtMax = 2_000;

/** The beginning of an instruction on one line, for the log. */
export function shortened(text: string): string {
  const line = text
    .slice(0, lookedAtMax)
    .split(/\s/)
    .filter(word => word !== '')
    .join(' ');
  return line.length > charactersMax || text.length > lookedAtMax ? `${line.slice(0, charactersMax)}…` : line;
}
