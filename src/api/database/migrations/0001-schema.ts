import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import { notifyOfCredentialChanges } from './first/credential-changes.ts';
import { createEventTables } from './first/events.ts';
import { createOperatorTables } from './first/operator.ts';
import { createReplicaTables } from './first/replicas.ts';
import { createSandboxTables } from './first/sandboxes.ts';
import { createSessionTables } from './first/sessions.ts';
import { createTeamTables } from './first/teams.ts';
import { createTemplateTables } from './first/templates.ts';
import { createVolumeTables } from './first/volumes.ts';

/** The schema of the first release. */
export const schema: Migration = {
  async up(db: Kysely<unknown>) {
    await createTeamTables(db);
    await createSessionTables(db);
    await createTemplateTables(db);
    await createSandboxTables(db);
    await createReplicaTables(db);
    await createVolumeTables(db);
    await createEventTables(db);
    await createOperatorTables(db);
    await notifyOfCredentialChanges(db);
  },
};
