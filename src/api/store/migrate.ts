import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import { Migrator } from 'kysely/migration';
import type { Migration } from 'kysely/migration';
import { AtollError } from '../../base/error.ts';
import { first } from './migrations/0001-first.ts';
import { builds } from './migrations/0003-builds.ts';
import { tellCredentialChanges } from './migrations/0002-tell-credential-changes.ts';
import { audit } from './migrations/0005-audit.ts';
import { secrets } from './migrations/0006-secrets.ts';
import { nodes } from './migrations/0004-nodes.ts';
import { lifecycle } from './migrations/0007-lifecycle.ts';
import { sandboxesByState } from './migrations/0008-sandboxes-by-state.ts';
import { volumes } from './migrations/0009-volumes.ts';
import { metrics } from './migrations/0010-metrics.ts';
import { events } from './migrations/0012-events.ts';
import { installation } from './migrations/0013-installation.ts';
import type { Db } from './database.ts';
import type { Tables } from './schema.ts';

/** Kysely's own. */
const migrationTable = 'kysely_migration';

/** In order, forward only. A migration that was released is never edited; its name never changes. */
export const migrations: Record<string, Migration> = {
  '0001-first': first,
  '0002-tell-credential-changes': tellCredentialChanges,
  '0003-builds': builds,
  '0004-nodes': nodes,
  '0005-audit': audit,
  '0006-secrets': secrets,
  '0007-lifecycle': lifecycle,
  '0008-sandboxes-by-state': sandboxesByState,
  '0009-volumes': volumes,
  '0010-metrics': metrics,
  '0012-events': events,
  '0013-installation': installation,
};

/**
 * Brings the schema up to date, or up to the migration `upTo`: all missing migrations in one transaction, so that a crash
 * leaves the old schema. Throws `precondition`, and changes nothing, where a newer version has been at work.
 */
export async function migrate(db: Kysely<Tables>, upTo?: string): Promise<void> {
  await refuseNewer(db, upTo);
  // Between released versions numbers only grow; between the states of a branch they may come in another order.
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations }, allowUnorderedMigrations: true });
  const { error, results } = await (upTo === undefined ? migrator.migrateToLatest() : migrator.migrateTo(upTo));
  if (error === undefined) return;
  // What the world did to the database says itself what it is.
  if (error instanceof AtollError) throw error;
  const failed = results?.find(result => result.status === 'Error')?.migrationName;
  throw new AtollError('internal', failed === undefined ? 'The database cannot be brought up to date' : `The database cannot be brought up to date: migration ${failed} failed`, { cause: error });
}

/** The newest migration that the database has had; null where it has had none. */
export async function schemaVersion(db: Db): Promise<string | null> {
  return (await doneMigrations(db)).at(-1) ?? null;
}

/** Throws `precondition` for a schema that a newer version has made. */
export async function refuseNewer(db: Db, upTo?: string): Promise<void> {
  const unknown = [...(await doneMigrations(db)), ...(upTo === undefined ? [] : [upTo])].filter(name => migrations[name] === undefined);
  if (unknown.length === 0) return;
  throw new AtollError('precondition', `The state was written by a newer version of Atoll (it has had the migrations ${unknown.join(', ')}). Run that version, or restore a backup of this one; nothing was changed.`);
}

async function doneMigrations(db: Db): Promise<string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === migrationTable)) return [];
  const { rows } = await sql<{ name: string }>`select name from ${sql.table(migrationTable)} order by name`.execute(db);
  return rows.map(({ name }) => name);
}
