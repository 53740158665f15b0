/** Rows as aligned columns, the first row the headings. The last column is not padded. */
export function tableText(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)));
  const line = (row: string[]) => row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0))).join('  ');
  return rows.map(row => `${line(row).trimEnd()}\n`).join('');
}
