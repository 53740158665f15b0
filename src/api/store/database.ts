import { Kysely } from 'kysely';
import type { Transaction } from 'kysely';
import { connectPostgres } from './postgres.ts';
import { migrate } from './migrate.ts';
import { CredentialWatch } from './postgres-watch.ts';
import type { Tables } from './schema.ts';
import { connectSqlite } from './sqlite.ts';

/** Where the state is kept. */
export type StoreLocation = { kind: 'sqlite'; path: string } | { kind: 'postgres'; url: string };

/** Runs queries: the database itself or a transaction on it. */
export type Db = Kysely<Tables> | Transaction<Tables>;

/** Runs `work` in a transaction: in the one that `db` is, else in one of its own. */
export function inTransaction<T>(db: Db, work: (db: Transaction<Tables>) => Promise<T>): Promise<T> {
  return db.isTransaction ? work(db as Transaction<Tables>) : db.transaction().execute(work);
}

export type Store = {
  readonly kind: StoreLocation['kind'];
  readonly db: Kysely<Tables>;
  /** True once after a change of keys or teams that was made over another connection (on SQLite: of anything). */
  changedElsewhere(): boolean;
  [Symbol.asyncDispose](): Promise<void>;
};

/** Opens the database and brings its schema up to date. */
export async function openStore(location: StoreLocation): Promise<Store> {
  const store = connectStore(location);
  try {
    await migrate(store.db);
    return store;
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

/** Connects to a database whatever its schema is: for those who bring it up to date or copy it. */
export function connectStore(location: StoreLocation): Store {
  if (location.kind === 'sqlite') {
    const { dialect, changedElsewhere } = connectSqlite(location.path);
    const db = new Kysely<Tables>({ dialect });
    return { kind: 'sqlite', db, changedElsewhere, [Symbol.asyncDispose]: () => db.destroy() };
  }
  const db = new Kysely<Tables>({ dialect: connectPostgres(location.url) });
  const watch = new CredentialWatch(location.url);
  return {
    kind: 'postgres',
    db,
    changedElsewhere: () => watch.changedElsewhere(),
    async [Symbol.asyncDispose]() {
      await watch.close();
      await db.destroy();
    },
  };
}
