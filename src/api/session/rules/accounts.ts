import { AtollError } from '../../../base/error.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { endListedKeys } from '../../credential/rules/api-keys.ts';
import { deleteAccessTokensOf } from '../../credential/store/access-token.ts';
import { requireHeld } from '../../credential/rules/held.ts';
import type { Accounts } from '../../team/rules/provision-team.ts';
import { requireInvitation, takeInvitation } from '../../team/rules/invitations.ts';
import { addMember, createUser } from '../../team/rules/provision-user.ts';
import { teamsOf } from '../../team/store/member.ts';
import { lockUser } from '../../team/store/lock.ts';
import { setPassword } from '../../team/store/user.ts';
import type { TeamRecord, UserRecord } from '../../team/record.ts';
import type { SessionRecord } from '../record.ts';
import { deleteSession, deleteSessionsOf } from '../store/sessions.ts';
import { deleteSignInLinksOf } from '../store/sign-in-links.ts';
import { beginSession } from './begin.ts';
import type { Begun, From } from './begin.ts';
import type { Passwords } from './passwords.ts';

type Deps = Accounts & { passwords: Passwords };

type Account = { name: string; email: string; password: string };

/**
 * Makes an operator's account for a person who signed in by the operator's link; the session is replaced by one of the
 * account. Throws `conflict` for a session that has an account, or where the e-mail address is taken, `unauthenticated`
 * where the session has ended meanwhile, and `invalid`; the session stays then.
 */
export async function createOperatorAccount(
  deps: Deps,
  session: SessionRecord,
  account: Account,
  from: From,
): Promise<Begun & { user: UserRecord }> {
  if (session.userId !== null) throw new AtollError('conflict', 'This session has an account already');
  const hash = await deps.passwords.hash(account.password);
  const user = await inTransaction(deps.db, async db => {
    // Done first: only one of two concurrent requests gets it, and a person who was signed out meanwhile makes no
    // account.
    if (!(await deleteSession(db, session.sessionId)))
      throw new AtollError('unauthenticated', 'The session of this request has ended');
    const user = await createUser({ ...deps, db }, { ...account, isOperator: true });
    await setPassword(db, user.userId, hash);
    return user;
  });
  deps.credentials.clear();
  return { ...(await beginSession(deps, { userId: user.userId, isOperator: true }, from)), user };
}

/**
 * Makes an account for a person who has an invitation into a team, and a session of it. Throws `unauthenticated` for an
 * invalid invitation, `conflict` where the e-mail address is taken, and `invalid`; the invitation stays then.
 */
export async function createInvitedAccount(
  deps: Deps,
  { invitation, ...account }: Account & { invitation: string },
  from: From,
): Promise<Begun & { user: UserRecord; team: TeamRecord }> {
  // A hash takes time and memory, and few are made at once: people without an invitation get none.
  await requireInvitation(deps.db, invitation);
  const hash = await deps.passwords.hash(account.password);
  const made = await inTransaction(deps.db, async db => {
    const { team, role } = await takeInvitation({ ...deps, db }, invitation);
    const user = await createUser({ ...deps, db }, account);
    await setPassword(db, user.userId, hash);
    await addMember({ ...deps, db }, team, user, role);
    return { user, team };
  });
  deps.credentials.clear();
  return { ...(await beginSession(deps, { userId: made.user.userId, isOperator: false }, from)), ...made };
}

/**
 * Sets the password of a session's user. Every session of the user ends, and a new one begins. Throws `unauthenticated`
 * where the session has ended meanwhile.
 */
export async function changePassword(
  deps: Deps,
  { userId }: UserRecord,
  { digest, isOperator }: SessionRecord,
  password: string,
  from: From,
): Promise<Begun> {
  const hash = await deps.passwords.hash(password);
  await inTransaction(deps.db, async db => {
    await lockUser(db, userId);
    await requireHeld(db, { kind: 'session', digest });
    await setPassword(db, userId, hash);
    await deleteSessionsOf(db, userId);
  });
  deps.credentials.clear();
  return beginSession(deps, { userId, isOperator }, from);
}

/**
 * Ends a password, and everything that it signed in or made: sessions, links, access tokens, and the keys that listing
 * teams has made. `db` is a transaction.
 */
export async function endPassword(db: Db, userId: string): Promise<void> {
  await lockUser(db, userId);
  await setPassword(db, userId, null);
  await deleteSessionsOf(db, userId);
  await deleteSignInLinksOf(db, userId);
  await deleteAccessTokensOf(db, userId);
  for (const { team } of await teamsOf(db, userId)) await endListedKeys(db, team.teamId, userId);
}
