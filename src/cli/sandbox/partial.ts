/** What to print if a machine of a cluster is away that has a part of `what`. */
export const partialText = (what: string): string =>
  `A machine that the sandbox was on is out of reach: what it has of the ${what} is missing.\n`;
