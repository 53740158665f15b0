import type { ColumnType } from 'kysely';

/** A truth, as both databases hold it. */
export type Flag = 0 | 1;

/** Set on insert, never changed. */
export type Fixed<T> = ColumnType<T, T, never>;
