/** Rows and columns of a table that are shown. */
const [rowsMax, columnsMax] = [1_000, 50];
const separators: Record<string, string> = { csv: ',', tsv: '\t' };

/** Separated values as rows of cells; `more`: there are further rows. */
export type TableOfText = { rows: string[][]; more: boolean };

/** Reads as much of a file of separated values (RFC 4180; tabs in a `.tsv`) as is shown; null for other files. */
export function tableOf(path: string, text: string): TableOfText | null {
  const separator = separators[path.slice(path.lastIndexOf('.') + 1).toLowerCase()];
  if (separator === undefined) return null;
  const rows: string[][] = [];
  let [row, cell, isQuoted]: [string[], string, boolean] = [[], '', false];
  const endCell = () => {
    if (row.length < columnsMax) row.push(cell);
    cell = '';
  };
  for (let at = 0; at < text.length; at++) {
    const one = text[at] ?? '';
    if (isQuoted) {
      if (one !== '"') cell += one;
      else if (text[at + 1] === '"') cell += text[at++];
      else isQuoted = false;
    } else if (one === '"' && cell === '') isQuoted = true;
    else if (one === separator) endCell();
    else if (one === '\n') {
      endCell();
      rows.push(row);
      if (rows.length > rowsMax) return { rows: rows.slice(0, rowsMax), more: true };
      row = [];
    } else if (one !== '\r' || text[at + 1] !== '\n') cell += one;
  }
  if (cell !== '' || row.length > 0) {
    endCell();
    rows.push(row);
  }
  return { rows: rows.slice(0, rowsMax), more: rows.length > rowsMax };
}
