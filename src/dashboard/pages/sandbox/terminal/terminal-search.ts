/** Size of a terminal in characters. */
export type ShellSize = { cols: number; rows: number };

/**
 * What the URL says of the terminal: the tab that is shown, and the one beside it; or the process that is watched, and
 * how large its terminal was.
 */
export type TerminalSearch = { shell?: number; beside?: number; watch?: number } & Partial<ShellSize>;

const whole = (value: unknown, max: number): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 && value <= max;
/** Columns or rows at most. */
const sizeMax = 1_000;

/** Reads the search of a URL that anybody may have written. */
export function readTerminalSearch(raw: Record<string, unknown>): TerminalSearch {
  const { shell, beside, watch, cols, rows } = raw;
  return {
    ...(whole(shell, Number.MAX_SAFE_INTEGER) && { shell }),
    ...(whole(beside, Number.MAX_SAFE_INTEGER) && { beside }),
    ...(whole(watch, Number.MAX_SAFE_INTEGER) && { watch }),
    ...(whole(cols, sizeMax) && whole(rows, sizeMax) && { cols, rows }),
  };
}
