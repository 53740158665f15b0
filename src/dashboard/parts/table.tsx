import type { ReactNode } from 'react';
import { Empty } from './bits.tsx';

/** A column: its name, and what it shows of a row. */
type Column<T> = { name: string; end?: boolean; of: (row: T) => ReactNode };

type TableProps<T> = {
  /** Says to who can't see it what the table lists. */
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  /** Shown instead where there are no rows. */
  empty: ReactNode;
};

/** A plain table. */
export function Table<T>({ label, columns, rows, keyOf, empty }: TableProps<T>) {
  if (rows.length === 0)
    return <div className="table-wrap">{typeof empty === 'string' ? <Empty title={empty} /> : empty}</div>;
  return (
    <div className="table-wrap" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(({ name, end }) => (
              <th key={name} scope="col" className={end ? 'end' : undefined}>
                {name}
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
  );
}
