/** A value of a table that a user saves. */
type Cell = string | number | boolean | null | undefined;

/** What a spreadsheet takes for a formula. */
const formula = /^[=+\-@\t\r]/;

/**
 * Rows as comma-separated values (RFC 4180), `head` first. Texts come from anybody: an apostrophe before a text that a
 * spreadsheet would compute makes it stay a text.
 */
export const csvOf = (head: readonly string[], rows: readonly (readonly Cell[])[]): string =>
  [head, ...rows].map(row => `${row.map(textOf).join(',')}\r\n`).join('');

function textOf(cell: Cell): string {
  if (typeof cell !== 'string') return cell == null ? '' : String(cell);
  const text = formula.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
