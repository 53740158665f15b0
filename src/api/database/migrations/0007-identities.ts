import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The users' identities at identity providers. */
export const identities: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('user_identities')
      .addColumn('issuer', 'text', column => column.notNull())
      .addColumn('subject', 'text', column => column.notNull())
      .addColumn('user_id', 'text', column => column.notNull().references('users.user_id').onDelete('cascade'))
      .addColumn('created_at_us', 'bigint', column => column.notNull())
      .addPrimaryKeyConstraint('user_identities_key', ['issuer', 'subject'])
      .execute();
    await db.schema.createIndex('user_identities_by_user').on('user_identities').column('user_id').execute();
  },
};
