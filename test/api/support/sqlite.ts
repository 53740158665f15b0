import { copyFileSync } from 'node:fs';
import { openStore } from '../../../src/api/database/database.ts';
import type { StoreLocation } from '../../../src/api/database/db.ts';
import { seedOf } from './seeds.ts';

/** A new database with today's schema, in the file `path`. */
export async function newSqliteStore(path: string): Promise<StoreLocation> {
  copyFileSync(await seedOf('sqlite', migrated), path);
  return { kind: 'sqlite', path };
}

async function migrated(path: string): Promise<void> {
  const store = await openStore({ kind: 'sqlite', path });
  await store[Symbol.asyncDispose]();
}
