import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { findUserByEmail, insertMember, insertUser, teamsOf } from '../store/member.ts';
import type { Accounts } from './provision-team.ts';
import type { Role } from '../../../protocol/api/member.ts';
import type { TeamRecord, UserRecord } from '../record.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';

/** A new user. Throws `invalid` or `conflict` (the e-mail address is taken). */
export async function createUser(
  { clock, db }: { clock: Clock; db: Db },
  user: { email: string | null; name: string; isOperator?: boolean },
): Promise<UserRecord> {
  const { email, name } = user;
  if (email !== null && !/^[^\s@]+@[^\s@]+$/.test(email))
    throw new AtollError('invalid', `email: "${email}" is not an e-mail address`);
  if (email !== null && (await findUserByEmail(db, email)))
    throw new AtollError('conflict', `email: "${email}" is taken`);
  const record: UserRecord = {
    userId: newUuid(),
    email,
    name,
    createdAtUs: clock(),
    isOperator: user.isOperator ?? false,
    hasPassword: false,
  };
  await insertUser(db, record);
  return record;
}

/** Makes a user a member of a team; the first team of a user is the default one. Throws `conflict`. */
export async function addMember(
  { clock, credentials, db }: Accounts,
  team: TeamRecord,
  user: UserRecord,
  role: Role = 'admin',
): Promise<void> {
  const teams = await teamsOf(db, user.userId);
  if (teams.some(membership => membership.team.teamId === team.teamId)) {
    throw new AtollError('conflict', `${user.name} is a member of the team "${team.slug}" already`);
  }
  await insertMember(db, {
    teamId: team.teamId,
    userId: user.userId,
    isDefault: teams.length === 0,
    role,
    nowUs: clock(),
  });
  credentials.clear();
}
