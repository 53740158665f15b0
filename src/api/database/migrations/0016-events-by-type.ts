import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** An index that finds a page of a team's events of some types, however rare these are. */
export const eventsByType: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.createIndex('events_by_type').on('events').columns(['team_id', 'type', 'sequence']).execute();
  },
};
