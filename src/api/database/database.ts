import { Kysely } from 'kysely';
import type { StoreLocation } from './db.ts';
import { connectPostgres } from './postgres/connect.ts';
import { migrate } from './migrate.ts';
import { ChangeWatch, type SandboxListener } from './postgres/watch.ts';
import type { Tables } from './schema.ts';
import { connectSqlite } from './sqlite/connect.ts';

/** The open state of an installation, closed by disposal. */
export type Store = {
  readonly kind: StoreLocation['kind'];
  readonly db: Kysely<Tables>;
  /** True once after a change of keys or teams over another connection (on SQLite: after any change). */
  changedElsewhere(): boolean;
  /** Resolves when what was committed before the call outlives a loss of power. */
  flushed(): Promise<void>;
  /**
   * Calls `listener` with the sandboxes whose rows anybody has changed, until the returned function is called. On
   * SQLite nobody else changes rows, and nothing is reported.
   */
  onSandboxChanges(listener: SandboxListener): () => void;
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

/** Connects to a database whatever its schema: for callers that bring it up to date or copy it. */
export function connectStore(location: StoreLocation): Store {
  if (location.kind === 'sqlite') {
    const { dialect, changedElsewhere, flushed, endWriting } = connectSqlite(location.path);
    const db = new Kysely<Tables>({ dialect });
    return {
      kind: 'sqlite',
      db,
      changedElsewhere,
      flushed,
      onSandboxChanges: () => () => {},
      [Symbol.asyncDispose]: async () => {
        await flushed()
          .finally(endWriting)
          .finally(() => db.destroy());
      },
    };
  }
  const { dialect, newestTimeline } = connectPostgres(location.url);
  const db = new Kysely<Tables>({ dialect });
  const watch = new ChangeWatch(location.url, newestTimeline);
  return {
    kind: 'postgres',
    db,
    changedElsewhere: () => watch.changedElsewhere(),
    // Commits wait for the server's disk (`synchronous_commit`), unless its operator has changed that.
    flushed: async () => {},
    onSandboxChanges: listener => watch.onSandboxes(listener),
    async [Symbol.asyncDispose]() {
      await watch.close();
      await db.destroy();
    },
  };
}
