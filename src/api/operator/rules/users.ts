import { AtollError } from '../../../base/error.ts';
import { endMembership } from '../../team/rules/members.ts';
import { listUsers } from '../../team/store/member.ts';
import { findUsers, setOperator } from '../../team/store/user.ts';
import { isUuid } from '../../../base/id.ts';
import type { TeamRecord, UserRecord } from '../../team/record.ts';
import { inTransaction, type Db } from '../../database/db.ts';
import type { CredentialCache } from '../../credential/rules/cache.ts';

/** The user that an operator names. Throws `not_found`, `invalid` for a text that is not an ID. */
export async function userForAdmin(db: Db, userId: string): Promise<UserRecord> {
  if (!isUuid(userId)) throw new AtollError('invalid', `userID: "${userId}" is not the ID of a user (a UUID)`);
  const user = (await findUsers(db, [userId])).get(userId);
  if (!user) throw new AtollError('not_found', `User "${userId}" was not found`);
  return user;
}

/** Every user, the oldest first. */
export async function listAllUsers(db: Db): Promise<UserRecord[]> {
  return listUsers(db);
}

/** Ends a membership, as the team's admins do. Throws `not_found`. */
export async function removeMember(
  { credentials, db }: { credentials: CredentialCache; db: Db },
  team: TeamRecord,
  user: UserRecord,
): Promise<void> {
  const removed = await inTransaction(db, async db => endMembership(db, team.teamId, user.userId));
  credentials.clear();
  if (!removed) throw new AtollError('not_found', `${user.name} is not a member of the team "${team.slug}"`);
}

/**
 * Makes a user an operator, or ends that, from the next request on. Answers the earlier record too. Throws as
 * `userForAdmin`.
 */
export async function changeOperator(
  { credentials, db }: { credentials: CredentialCache; db: Db },
  userId: string,
  isOperator: boolean,
): Promise<UserRecord> {
  const user = await userForAdmin(db, userId);
  await setOperator(db, userId, isOperator);
  credentials.clear();
  return user;
}
