import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** How many places of its limit a team takes is counted at each create: from the index alone, however many sandboxes are paused. */
export const sandboxesByState: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.createIndex('sandboxes_by_state').on('sandboxes').columns(['team_id', 'state']).execute();
  },
};
