import { PostgresAdapter } from 'kysely';
import type { Kysely, Transaction } from 'kysely';
import type { Tables } from './schema.ts';

/** Where the state is kept. */
export type StoreLocation = { kind: 'sqlite'; path: string } | { kind: 'postgres'; url: string };

/** Runs queries: the database itself or a transaction on it. */
export type Db = Kysely<Tables> | Transaction<Tables>;

/** Runs `work` in a transaction: in `db` if that is one, else in a new one. */
export function inTransaction<T>(db: Db, work: (db: Transaction<Tables>) => Promise<T>): Promise<T> {
  return db.isTransaction ? work(db as Transaction<Tables>) : db.transaction().execute(work);
}

/** The kind of database behind `db`: only PostgreSQL runs transactions side by side, and locks rows. */
export function kindOf(db: Db): StoreLocation['kind'] {
  return db.getExecutor().adapter instanceof PostgresAdapter ? 'postgres' : 'sqlite';
}
