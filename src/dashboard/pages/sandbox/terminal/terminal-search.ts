/** Size of a terminal in characters. */
export type ShellSize = { cols: number; rows: number };

/**
 * The terminal's state in the URL: the tab that is shown and the one beside it; or the watched process and its
 * terminal's size.
 */
export type TerminalSearch = { shell?: number; beside?: number; watch?: number } & Partial<ShellSize>;

const whole = (value: unknown, max: number): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 && value <= max;
/** Most columns or rows. */
const sizeMax = 1_000;

/** Reads the search part of a URL, which anybody may have written. */
export function readTerminalSearch(raw: Record<string, unknown>): TerminalSearch {
  const { shell, beside, watch, cols, rows } = raw;
  return {
    ...(whole(shell, Number.MAX_SAFE_INTEGER) && { shell }),
    ...(whole(beside, Number.MAX_SAFE_INTEGER) && { beside }),
    ...(whole(watch, Number.MAX_SAFE_INTEGER) && { watch }),
    ...(whole(cols, sizeMax) && whole(rows, sizeMax) && { cols, rows }),
  };
}
