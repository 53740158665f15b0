import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { lockTeam } from '../store/lock.ts';
import { countMembers, countUsers, findUserByEmail, insertMember, insertUser, teamsOf } from '../store/member.ts';
import type { Accounts } from './provision-team.ts';
import type { Role } from '../../../protocol/api/member.ts';
import type { TeamRecord, UserRecord } from '../record.ts';
import type { Clock } from '../../../base/clock.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';

/** Users of the installation: anybody with an invitation into a team can make one. */
const usersMax = 100_000;

/** Makes a user. Throws `invalid`, `conflict` (the e-mail address is taken), `rate_limited` (there are `most`). */
export async function createUser(
  { clock, db }: { clock: Clock; db: Db },
  user: { email: string | null; name: string; isOperator?: boolean },
  most: number = usersMax,
): Promise<UserRecord> {
  const { email, name } = user;
  if (email !== null && !/^[^\s@]+@[^\s@]+$/.test(email))
    throw new AtollError('invalid', `email: "${email}" is not an e-mail address`);
  const taken = () => new AtollError('conflict', `email: "${email}" is taken`);
  if (email !== null && (await findUserByEmail(db, email))) throw taken();
  if ((await countUsers(db)) >= most)
    throw new AtollError('rate_limited', `The installation has ${most} users, which is the most (usersMax)`);
  const record: UserRecord = {
    userId: newUuid(),
    email,
    name,
    createdAtUs: clock(),
    isOperator: user.isOperator ?? false,
    hasPassword: false,
  };
  if (!(await insertUser(db, record))) throw taken();
  return record;
}

/** Members of a team. */
const membersMax = 1_000;

/**
 * Makes a user a member of a team; a user's first team is their default one. Throws `conflict`, and `rate_limited`
 * where the team has `most` members.
 */
export async function addMember(
  { clock, credentials, db }: Accounts,
  team: TeamRecord,
  user: UserRecord,
  role: Role = 'admin',
  most: number = membersMax,
): Promise<void> {
  const { teamId } = team;
  const { userId } = user;
  await inTransaction(db, async db => {
    await lockTeam(db, teamId);
    const teams = await teamsOf(db, userId);
    if (teams.some(membership => membership.team.teamId === teamId))
      throw new AtollError('conflict', `${user.name} is a member of the team "${team.slug}" already`);
    if ((await countMembers(db, teamId)) >= most)
      throw new AtollError('rate_limited', `The team has ${most} members, which is the most (membersMax)`);
    await insertMember(db, { teamId, userId, isDefault: teams.length === 0, role, nowUs: clock() });
  });
  credentials.clear();
}
