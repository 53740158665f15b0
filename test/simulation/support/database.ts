import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kysely, PostgresAdapter, type SelectModifierNode, SqliteQueryCompiler } from 'kysely';
import { connectSqlite } from '../../../src/api/database/sqlite.ts';
import type { Tables } from '../../../src/api/database/schema.ts';
import { openStore } from '../../../src/api/database/database.ts';

/** One that all share, as PostgreSQL is: a transaction excludes every other one, so that no row has to be locked. */
class Lockless extends SqliteQueryCompiler {
  protected override visitSelectModifier(node: SelectModifierNode): void {
    if (node.modifier !== 'ForUpdate' && node.modifier !== 'ForShare') super.visitSelectModifier(node);
  }
}

/** What asks it for its kind is answered as by PostgreSQL; but there is one connection, which one has at a time. */
class OneConnection extends PostgresAdapter {
  override get supportsMultipleConnections(): boolean {
    return false;
  }
}

/** A database that several control processes share, in this process alone and without waiting for anything. */
export type SharedDatabase = AsyncDisposable & { db: Kysely<Tables>; empty(): Promise<void> };

/** Makes one. */
export async function sharedDatabase(): Promise<SharedDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-simulation-'));
  const path = join(folder, 'atoll.db');
  await (await openStore({ kind: 'sqlite', path }))[Symbol.asyncDispose]();
  const { dialect } = connectSqlite(path);
  const db = new Kysely<Tables>({
    dialect: { ...dialect, createAdapter: () => new OneConnection(), createQueryCompiler: () => new Lockless() },
  });
  const tables = [
    'blob_refs',
    'blobs',
    'sandboxes',
    'past_sandboxes',
    'sandbox_homes',
    'events',
    'cluster_nodes',
    'nodes',
  ] as const;
  return {
    db,
    async empty() {
      for (const table of [...tables, 'replicas'] as const) await db.deleteFrom(table).execute();
    },
    async [Symbol.asyncDispose]() {
      await db.destroy();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
