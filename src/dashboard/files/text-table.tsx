import type { TableOfText } from './table-of.ts';

/** A file of separated values as a table, with its first row as the head. */
export function TextTable({ path, of: { rows, more } }: { path: string; of: TableOfText }) {
  const [head = [], ...others] = rows;
  // Rows and cells are identified only by their position: nothing in a file is unique.
  return (
    <>
      <div className="table-wrap text-table" tabIndex={0} role="region" aria-label={`Table of ${path}`}>
        <table>
          <thead>
            <tr>
              {head.map((cell, column) => (
                <th key={column} scope="col">
                  {cell}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {others.map((row, place) => (
              <tr key={place}>
                {row.map((cell, column) => (
                  <td key={column}>{cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more && <p className="small muted">The first {rows.length} rows; the others are in the text.</p>}
    </>
  );
}
