import { Download } from 'lucide-react';
import type { ReactNode } from 'react';
import { Empty } from './bits.tsx';
import { csvOf } from './csv.ts';
import { keepText } from './keep-text.ts';

/** A column: its name, and what it shows of a row. */
type Column<T> = {
  name: string;
  end?: boolean;
  of: (row: T) => ReactNode;
  /** The column's value in a saved file; columns without it are left out. */
  text?: (row: T) => string | number | boolean | null | undefined;
};

type TableProps<T> = {
  /** Tells screen readers what the table lists. */
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  /** Shown if there are no rows. */
  empty: ReactNode;
  /** Name, without extension, of the file that the rows are saved as; absent: they can't be saved. */
  file?: string;
};

/** A plain table. */
export function Table<T>({ label, columns, rows, keyOf, empty, file }: TableProps<T>) {
  if (rows.length === 0)
    return <div className="table-wrap">{typeof empty === 'string' ? <Empty title={empty} /> : empty}</div>;
  const kept = columns.filter(({ text }) => text);
  const csv = () =>
    csvOf(
      kept.map(({ name }) => name),
      rows.map(row => kept.map(({ text }) => text?.(row))),
    );
  return (
    <>
      <div className="table-wrap" tabIndex={0} role="group" aria-label={label}>
        <table>
          <thead>
            <tr>
              {columns.map(({ name, end }) => (
                <th key={name} scope="col" className={end ? 'end' : undefined}>
                  {name.trim() === '' ? <span className="sr">Actions</span> : name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(row => (
              <tr key={keyOf(row)}>
                {columns.map(({ name, end, of }) => (
                  <td key={name} className={end ? 'end num' : undefined}>
                    {of(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {file !== undefined && <CsvButton name={file} of={csv} />}
    </>
  );
}

/** Makes the browser save what a list shows, as comma-separated values. */
export function CsvButton({ name, of }: { name: string; of: () => string }) {
  return (
    <button
      type="button"
      className="button bare tiny keep"
      title="Keep the rows that are shown, as comma-separated values"
      onClick={() => keepText(`${name}.csv`, of())}
    >
      <Download size={13} /> CSV
    </button>
  );
}
