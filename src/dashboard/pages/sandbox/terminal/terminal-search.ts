/** What the URL says of the terminal: the tab that is shown. */
export type TerminalSearch = { shell?: number };

/** Reads the search of a URL that anybody may have written. */
export function readTerminalSearch(raw: Record<string, unknown>): TerminalSearch {
  const { shell } = raw;
  return typeof shell === 'number' && Number.isSafeInteger(shell) ? { shell } : {};
}
