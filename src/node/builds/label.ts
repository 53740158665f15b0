/** Of what is shown of an instruction, characters. */
const charactersMax = 200;
/** What of it is looked at: white space can be most of it. */
const lookedAtMax = 2_000;

/** The beginning of an instruction on one line, for the log. */
export function shortened(text: string): string {
  const line = text.slice(0, lookedAtMax).split(/\s/).filter(word => word !== '').join(' ');
  return line.length > charactersMax || text.length > lookedAtMax ? `${line.slice(0, charactersMax)}…` : line;
}
