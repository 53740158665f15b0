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
import type { Tables } from './schema.ts';

/** In order, forward only. A migration that was released is never edited; its name never changes. */
const migrations: Record<string, Migration> = {
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
};

/** Brings the schema up to date: all missing migrations in one transaction, so that a crash leaves the old schema. */
export async function migrate(db: Kysely<Tables>): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error, results } = await migrator.migrateToLatest();
  if (error === undefined) return;
  const failed = results?.find(result => result.status === 'Error')?.migrationName;
  throw new AtollError(
    'internal',
    failed === undefined
      ? 'The database cannot be brought up to date: it was written by a newer version, or cannot be reached'
      : `The database cannot be brought up to date: migration ${failed} failed`,
    { cause: error },
  );
}
