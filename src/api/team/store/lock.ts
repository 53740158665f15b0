import type { CompiledQuery } from 'kysely';
import { kindOf } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { prepared, together } from '../../database/prepared.ts';

/**
 * Makes transactions that count what a team has, and then add to it, take turns. `db` must be a transaction. PostgreSQL
 * runs them side by side, so the team's row is the lock; on SQLite a transaction excludes every other one by itself.
 */
export async function lockTeam(db: Db, teamId: string): Promise<void> {
  if (kindOf(db) === 'sqlite') return;
  await lock(db, { teamId });
}

/** The same, and answers a query that the next transaction must not run before this one has ended. */
export async function lockTeamFor<Row>(db: Db, teamId: string, query: CompiledQuery<Row>): Promise<Row[]> {
  if (kindOf(db) === 'sqlite') return (await db.executeQuery(query)).rows;
  const [, rows] = await together(db, [lock.queryOf(db, { teamId }), query]);
  return rows;
}

const lock = prepared<{ teamId: string }, { team_id: string }>((db, parameter) =>
  db.selectFrom('teams').select('team_id').where('team_id', '=', parameter('teamId')).forUpdate(),
);

/** The same for what a user has. */
export async function lockUser(db: Db, userId: string): Promise<void> {
  if (kindOf(db) === 'sqlite') return;
  await db.selectFrom('users').select('user_id').where('user_id', '=', userId).forUpdate().execute();
}
