import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import { findUserByEmail, insertMember, insertUser, teamsOf } from '../store/member.ts';
import type { TeamRecord } from '../store/team.ts';
import type { UserRecord } from '../store/user.ts';
import type { Accounts } from './provision-team.ts';

/** A new user. Throws `invalid` or `conflict` (the e-mail address is taken). */
export async function createUser(app: Accounts, user: { email: string | null; name: string }): Promise<UserRecord> {
  const { email, name } = user;
  if (email !== null && !/^[^\s@]+@[^\s@]+$/.test(email)) throw new AtollError('invalid', `email: "${email}" is not an e-mail address`);
  if (email !== null && (await findUserByEmail(app.store.db, email))) throw new AtollError('conflict', `email: "${email}" is taken`);
  const record: UserRecord = { userId: newUuid(), email, name, createdAtUs: app.clock() };
  await insertUser(app.store.db, record);
  return record;
}

/** Makes a user a member of a team; the first team of a user is the default one. Throws `conflict`. */
export async function addMember(app: Accounts, team: TeamRecord, user: UserRecord): Promise<void> {
  const teams = await teamsOf(app.store.db, user.userId);
  if (teams.some(membership => membership.team.teamId === team.teamId)) {
    throw new AtollError('conflict', `${user.name} is a member of the team "${team.slug}" already`);
  }
  await insertMember(app.store.db, { teamId: team.teamId, userId: user.userId, isDefault: teams.length === 0, nowUs: app.clock() });
  app.credentials.clear();
}
