import { PostgresAdapter, sql } from 'kysely';
import type { Kysely } from 'kysely';

/** The channel on which PostgreSQL reports that somebody has changed keys, tokens, teams or members. */
export const credentialChannel = 'atoll_credentials';

/**
 * The tables that decide who is let in, with the columns whose change matters: a key's last use does not. SQLite needs
 * none of this: it reports any change to its connections.
 */
const watched: Record<string, string> = {
  teams: '',
  team_members: '',
  api_keys: ' of team_id, digest',
  access_tokens: ' of user_id, digest',
  sessions: ' of user_id, digest',
};

/** Makes PostgreSQL notify of changes of credentials. */
export async function notifyOfCredentialChanges(db: Kysely<unknown>): Promise<void> {
  if (!(db.getExecutor().adapter instanceof PostgresAdapter)) return;
  await sql`
    create function tell_credential_change() returns trigger language plpgsql as $$
    begin
      perform pg_notify(${sql.lit(credentialChannel)}, '');
      return null;
    end $$
  `.execute(db);
  for (const [table, columns] of Object.entries(watched)) {
    await sql`
      create trigger tell_credential_change after insert or delete or update${sql.raw(columns)} on ${sql.table(table)}
      for each statement execute function tell_credential_change()
    `.execute(db);
  }
}
