import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import { Migrator } from 'kysely/migration';
import type { Migration } from 'kysely/migration';
import { AtollError } from '../../base/error.ts';
import { sandboxColumns } from '../sandbox/record.ts';
import { addedColumns } from './migrations/added-columns.ts';
import { schema } from './migrations/0001-schema.ts';
import { idempotencyKeys } from './migrations/0002-idempotency-keys.ts';
import { people } from './migrations/0003-people.ts';
import { cluster } from './migrations/0004-cluster.ts';
import { bounds } from './migrations/0005-bounds.ts';
import { store } from './migrations/0006-store.ts';
import { identities } from './migrations/0007-identities.ts';
import { pauseDefault } from './migrations/0008-pause-default.ts';
import { timeline } from './migrations/0009-timeline.ts';
import { buildSteps } from './migrations/0010-build-steps.ts';
import { volumeCopies } from './migrations/0011-volume-copies.ts';
import { repeatedRequests } from './migrations/0012-repeated-requests.ts';
import { templateHours } from './migrations/0013-template-hours.ts';
import { databaseClock } from './migrations/0015-database-clock.ts';
import { eventsByType } from './migrations/0016-events-by-type.ts';
import type { Db } from './db.ts';
import type { Tables } from './schema.ts';

/** Kysely's own table. */
const migrationTable = 'kysely_migration';

/** Forward only, in the order of their names. A released migration is never edited or renamed. */
export const migrations: Record<string, Migration> = {
  '0001-schema': schema,
  '0002-idempotency-keys': idempotencyKeys,
  '0003-people': people,
  '0004-cluster': cluster,
  '0005-bounds': bounds,
  '0006-store': store,
  '0007-identities': identities,
  '0008-pause-default': pauseDefault,
  '0009-timeline': timeline,
  '0010-build-steps': buildSteps,
  '0011-volume-copies': volumeCopies,
  '0012-repeated-requests': repeatedRequests,
  '0013-template-hours': templateHours,
  '0015-database-clock': databaseClock,
  '0016-events-by-type': eventsByType,
  ...addedColumns('sandboxes', sandboxColumns),
};

/**
 * Brings the schema up to date, or up to the migration `upTo`: all missing migrations in one transaction, so that a
 * crash leaves the old schema. Throws `precondition`, and changes nothing, for a schema that this version does not
 * know.
 */
export async function migrate(db: Kysely<Tables>, upTo?: string): Promise<void> {
  await refuseUnknown(db, upTo);
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error, results } = await (upTo === undefined ? migrator.migrateToLatest() : migrator.migrateTo(upTo));
  if (error === undefined) return;
  // An error of the world says itself what it is.
  if (error instanceof AtollError) throw error;
  const failed = results?.find(result => result.status === 'Error')?.migrationName;
  throw new AtollError(
    'internal',
    failed === undefined
      ? 'The database cannot be brought up to date'
      : `The database cannot be brought up to date: migration ${failed} failed`,
    { cause: error },
  );
}

/** The newest migration that the database has had; null where it has had none. */
export async function schemaVersion(db: Db): Promise<string | null> {
  return (await doneMigrations(db)).at(-1) ?? null;
}

/**
 * Throws `precondition` for a schema of an earlier version: that version may be running on it, and only a start of this
 * one brings it up to date.
 */
export async function refusePending(db: Db): Promise<void> {
  const version = await schemaVersion(db);
  const pending = Object.keys(migrations).filter(name => version !== null && name > version);
  if (pending.length === 0) return;
  throw new AtollError(
    'precondition',
    `The state is of an earlier version of Atoll (it lacks ${pending.join(', ')}). Use that version, or start ` +
      `this one first: \`atoll upgrade --check\` says what that does. Nothing was changed.`,
  );
}

/** Throws `precondition` for a schema that is neither of this version nor of an earlier released one. */
export async function refuseUnknown(db: Db, upTo?: string): Promise<void> {
  const unknown = [...(await doneMigrations(db)), ...(upTo === undefined ? [] : [upTo])].filter(
    name => migrations[name] === undefined,
  );
  if (unknown.length === 0) return;
  const newest = Object.keys(migrations).toSorted().at(-1) ?? '';
  const had = `it has had the migrations ${unknown.join(', ')}`;
  throw new AtollError(
    'precondition',
    unknown.some(name => name < newest)
      ? `The state was written by a development version of Atoll from before the first release (${had}), which no ` +
          'release takes over. Start with an empty data directory and database; nothing was changed.'
      : `The state was written by a newer version of Atoll (${had}). Run that version, or restore a backup of ` +
          'this one; nothing was changed.',
  );
}

async function doneMigrations(db: Db): Promise<string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === migrationTable)) return [];
  const { rows } = await sql<{ name: string }>`select name from ${sql.table(migrationTable)} order by name`.execute(db);
  return rows.map(({ name }) => name);
}
