import type { ColumnType } from 'kysely';
import type { Column, Columns } from '../record/column.ts';

/** A boolean, as both databases store it. */
export type Flag = 0 | 1;

/** Set on insert, never changed. */
export type Fixed<T> = ColumnType<T, T, never>;

/** The table type for columns that are defined with their records. */
export type TableOf<C extends Columns> = {
  [Member in keyof C as C[Member]['name']]: C[Member] extends Column<string, unknown, infer Stored, infer Changes>
    ? Changes extends true
      ? Stored
      : Fixed<Stored>
    : never;
};
