import type { Db } from '../../database/db.ts';
import { teamOfRow } from './team.ts';
import { userOfRow } from './user.ts';
import type { Role } from '../../../protocol/api/member.ts';
import type { Membership, MemberRecord, UserRecord } from '../record.ts';

/** The teams of a user, the default one first, then the oldest. */
export async function teamsOf(db: Db, userId: string): Promise<Membership[]> {
  const rows = await db
    .selectFrom('team_members')
    .innerJoin('teams', 'teams.team_id', 'team_members.team_id')
    .selectAll('teams')
    .select(['is_default', 'role'])
    .where('user_id', '=', userId)
    .orderBy('is_default', 'desc')
    .orderBy('team_members.created_at_us')
    .orderBy('teams.team_id')
    .execute();
  return rows.map(row => ({ team: teamOfRow(row), isDefault: row.is_default === 1, role: row.role }));
}

/** How many members a team has. */
export async function countMembers(db: Db, teamId: string): Promise<number> {
  const { count } = await db
    .selectFrom('team_members')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('team_id', '=', teamId)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** How many users there are. */
export async function countUsers(db: Db): Promise<number> {
  const { count } = await db
    .selectFrom('users')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Makes a user a member of a team. */
export async function insertMember(
  db: Db,
  member: { teamId: string; userId: string; isDefault: boolean; role: Role; nowUs: number },
): Promise<void> {
  await db
    .insertInto('team_members')
    .values({
      team_id: member.teamId,
      user_id: member.userId,
      is_default: member.isDefault ? 1 : 0,
      role: member.role,
      created_at_us: member.nowUs,
    })
    .execute();
}

/** Writes a new user. False where the e-mail address is taken, even at the same moment. */
export async function insertUser(db: Db, user: UserRecord): Promise<boolean> {
  const result = await db
    .insertInto('users')
    .values({
      user_id: user.userId,
      email: user.email,
      name: user.name,
      created_at_us: user.createdAtUs,
      is_operator: user.isOperator ? 1 : 0,
      password_hash: null,
    })
    .onConflict(conflict => conflict.column('email').doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** The user with this e-mail address, or null. */
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
  const result = await db
    .deleteFrom('team_members')
    .where('team_id', '=', teamId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** The members of a team, the oldest first. */
export async function listMembers(db: Db, teamId: string): Promise<MemberRecord[]> {
  const rows = await db
    .selectFrom('team_members')
    .innerJoin('users', 'users.user_id', 'team_members.user_id')
    .selectAll('users')
    .select(['role', 'team_members.created_at_us as since_us'])
    .where('team_id', '=', teamId)
    .orderBy('team_members.created_at_us')
    .orderBy('users.user_id')
    .execute();
  return rows.map(row => ({ user: userOfRow(row), role: row.role, sinceUs: row.since_us }));
}

/** The role of a user in a team; null for a user who is not a member. */
export async function findRole(db: Db, teamId: string, userId: string): Promise<Role | null> {
  const row = await db
    .selectFrom('team_members')
    .select('role')
    .where('team_id', '=', teamId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row?.role ?? null;
}

/** Gives a member a role. */
export async function setRole(db: Db, teamId: string, userId: string, role: Role): Promise<void> {
  await db
    .updateTable('team_members')
    .set({ role })
    .where('team_id', '=', teamId)
    .where('user_id', '=', userId)
    .execute();
}
