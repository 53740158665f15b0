import { AtollError } from '../../base/error.ts';
import { deleteMember, listUsers } from '../store/member.ts';
import type { TeamRecord } from '../store/team.ts';
import { findUsers } from '../store/user.ts';
import type { UserRecord } from '../store/user.ts';
import type { App } from './context.ts';
import { isUuid } from './template-reference.ts';

/** The user that an operator means. Throws `not_found`, `invalid` for a text that is no ID. */
export async function userForAdmin(app: App, userId: string): Promise<UserRecord> {
  if (!isUuid(userId)) throw new AtollError('invalid', `userID: "${userId}" is not the ID of a user (a UUID)`);
  const user = (await findUsers(app.store.db, [userId])).get(userId);
  if (!user) throw new AtollError('not_found', `User "${userId}" was not found`);
  return user;
}

/** Every user, the oldest first. */
export async function listAllUsers(app: App): Promise<UserRecord[]> {
  return listUsers(app.store.db);
}

/** Ends a membership: the user's tokens stand for that team no more. Throws `not_found`. */
export async function removeMember(app: App, team: TeamRecord, user: UserRecord): Promise<void> {
  const removed = await deleteMember(app.store.db, team.teamId, user.userId);
  app.credentials.clear();
  if (!removed) throw new AtollError('not_found', `${user.name} is not a member of the team "${team.slug}"`);
}
