import { formatAgo } from '../../base/duration.ts';
import { printable } from './printable.ts';
import type { Terminal } from './command.ts';

/** The least width of a column in a table that is too wide. */
const cellCharactersMin = 8;
const gap = '  ';

/**
 * Rows as aligned columns; the first row holds the headings. The last column is not padded. If lines are limited to
 * `columns`, the widest columns shrink, except the first: it holds what other commands take.
 */
export function tableText(given: string[][], columns = Infinity): string {
  // A line break in a name would begin a row of its own.
  const rows = given.map(row => row.map(cell => printable(cell).replace(/[\n\t]+/g, ' ')));
  const widths = fitting(
    (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0))),
    columns,
  );
  const line = (row: string[]) =>
    row
      .map((cell, column) =>
        cut(cell, widths[column] ?? 0).padEnd(column === row.length - 1 ? 0 : (widths[column] ?? 0)),
      )
      .join(gap);
  return rows.map(row => `${line(row).trimEnd()}\n`).join('');
}

function fitting(widths: number[], columns: number): number[] {
  const fitted = [...widths];
  const total = () => fitted.reduce((sum, width) => sum + width, (fitted.length - 1) * gap.length);
  while (total() > columns) {
    const widest = Math.max(...fitted.slice(1));
    if (widest <= cellCharactersMin) break;
    fitted[fitted.indexOf(widest, 1)] = Math.max(cellCharactersMin, widest - (total() - columns > 8 ? 8 : 1));
  }
  return fitted;
}

function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text;
}

/** What `--json` prints. */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Reports that something is done: to a person in a sentence, to a program as the new state, with the API's names. */
export function confirm(terminal: Terminal, asJson: boolean | undefined, value: unknown, sentence: string): void {
  if (asJson) terminal.out(jsonText(value));
  else terminal.err(`${sentence}\n`);
}

/** Prints what a person reads: as the result, unless the result is JSON; then beside it. */
export function toPerson(terminal: Terminal, asJson: boolean | undefined): (text: string) => void {
  return text => (asJson ? terminal.err(text) : terminal.out(text));
}

/** A time from the API; for a person, who has little room, its distance from now. */
export function momentText({ columns }: Terminal, timestamp: string): string {
  return columns === undefined ? timestamp : formatAgo(Date.now() - Date.parse(timestamp));
}

/** Prints the API's own answer, or a table of it that fits the terminal. */
export function show(terminal: Terminal, asJson: boolean | undefined, value: unknown, rows: string[][]): void {
  terminal.out(asJson ? jsonText(value) : tableText(rows, terminal.columns));
}
