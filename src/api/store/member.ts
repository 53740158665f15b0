import type { Db } from './database.ts';
import { teamOfRow } from './team.ts';
import type { TeamRecord } from './team.ts';
import { userOfRow } from './user.ts';
import type { UserRecord } from './user.ts';

export type Membership = { team: TeamRecord; isDefault: boolean };

/** The teams of a user, the default one first, then the oldest. */
export async function teamsOf(db: Db, userId: string): Promise<Membership[]> {
  const rows = await db
    .selectFrom('team_members')
    .innerJoin('teams', 'teams.team_id', 'team_members.team_id')
    .selectAll('teams')
    .select('is_default')
    .where('user_id', '=', userId)
    .orderBy('is_default', 'desc')
    .orderBy('team_members.created_at_us')
    .orderBy('teams.team_id')
    .execute();
  return rows.map(row => ({ team: teamOfRow(row), isDefault: row.is_default === 1 }));
}

export async function insertMember(db: Db, member: { teamId: string; userId: string; isDefault: boolean; nowUs: number }): Promise<void> {
  await db
    .insertInto('team_members')
    .values({ team_id: member.teamId, user_id: member.userId, is_default: member.isDefault ? 1 : 0, created_at_us: member.nowUs })
    .execute();
}

export async function insertUser(db: Db, user: UserRecord): Promise<void> {
  await db
    .insertInto('users')
    .values({ user_id: user.userId, email: user.email, name: user.name, created_at_us: user.createdAtUs })
    .execute();
}

export async function findUserByEmail(db: Db, email: string): Promise<UserRecord | null> {
  const row = await db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst();
  return row ? userOfRow(row) : null;
}

/** Every user, the oldest first. */
export async function listUsers(db: Db): Promise<UserRecord[]> {
  const rows = await db.selectFrom('users').selectAll().orderBy('created_at_us').orderBy('user_id').execute();
  return rows.map(userOfRow);
}

/** Ends a membership. False where there is none. */
export async function deleteMember(db: Db, teamId: string, userId: string): Promise<boolean> {
  const result = await db.deleteFrom('team_members').where('team_id', '=', teamId).where('user_id', '=', userId).executeTakeFirst();
  return result.numDeletedRows > 0n;
}
