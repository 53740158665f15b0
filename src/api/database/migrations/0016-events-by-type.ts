import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** A page of a team's events of some types is found by an index, however few of its events are of them. */
export const eventsByType: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.createIndex('events_by_type').on('events').columns(['team_id', 'type', 'sequence']).execute();
  },
};
