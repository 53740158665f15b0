/** How the log names a step of a build: where it is, e.g. `builder 2/5`, and what it does. */
export type Label = { place?: string; text: string };

/** A line of the log about what a label names. */
export function lineOf({ place, text }: Label, said = text): string {
  return place === undefined ? said : `[${place}] ${said}`;
}

/** Characters of an instruction that the log shows. */
const charactersMax = 200;
/** Characters of an instruction that are looked at: most of them can be white space. */
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
