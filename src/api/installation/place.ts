import type { StoreLocation } from '../database/db.ts';
import { sqlitePathOf } from './data-directory.ts';

/** Where an installation has its files and its state. */
export type Place = { dataDir: string; database: StoreLocation };

/** The place that settings name. Without a URL, the state is in SQLite, in the data directory. */
export function placeOf({ dataDir, databaseUrl }: { dataDir: string; databaseUrl?: string | undefined }): Place {
  return {
    dataDir,
    database:
      databaseUrl === undefined
        ? { kind: 'sqlite', path: sqlitePathOf(dataDir) }
        : { kind: 'postgres', url: databaseUrl },
  };
}
