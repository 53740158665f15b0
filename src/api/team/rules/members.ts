import { AtollError } from '../../../base/error.ts';
import { inTransaction } from '../../database/db.ts';
import type { Role } from '../../../protocol/api/member.ts';
import type { CredentialCache } from '../../credential/rules/cache.ts';
import type { Db } from '../../database/db.ts';
import type { MemberRecord, TeamRecord } from '../record.ts';
import { deleteInvitations } from '../store/invitations.ts';
import { lockTeam } from '../store/lock.ts';
import { deleteMember, listMembers, setRole } from '../store/member.ts';
import { endListedKeys } from '../../credential/rules/api-keys.ts';

type Deps = { credentials: CredentialCache; db: Db };

/** The members of a team, the oldest first. */
export const membersOf = (db: Db, { teamId }: TeamRecord): Promise<MemberRecord[]> => listMembers(db, teamId);

/**
 * Gives a member a role. Throws `not_found`, and `conflict` where the team would have no admin left. Answers the
 * earlier role too.
 */
export async function changeRole(deps: Deps, team: TeamRecord, userId: string, role: Role): Promise<MemberRecord> {
  return changeMember(deps, team, userId, role === 'admin', async (db, member) => {
    await setRole(db, team.teamId, userId, role);
    await endWaysIn(db, team.teamId, member, role);
  });
}

/**
 * Removes a member. Throws `not_found`, and `conflict` where the team would have no admin left. Answers the earlier
 * role.
 */
export async function removeFromTeam(deps: Deps, team: TeamRecord, userId: string): Promise<MemberRecord> {
  return changeMember(deps, team, userId, false, async db => void (await endMembership(db, team.teamId, userId)));
}

/**
 * Ends a membership, and the ways in which its user could act for the team or come back: see `endWaysIn`. False where
 * there is none. `db` is a transaction.
 */
export async function endMembership(db: Db, teamId: string, userId: string): Promise<boolean> {
  await lockTeam(db, teamId); // whatever the user is making for the team is made before this, or not at all
  const member = (await listMembers(db, teamId)).find(({ user }) => user.userId === userId);
  if (!member) return false;
  await deleteMember(db, teamId, userId);
  await endWaysIn(db, teamId, member, null);
  return true;
}

/**
 * What a member got by a role ends with the role: the keys that listing teams has made, which can do more than a viewer
 * may, and an admin's invitations. Nobody knows who made which invitation, so all of the team's end.
 */
async function endWaysIn(db: Db, teamId: string, { user, role }: MemberRecord, next: Role | null): Promise<void> {
  if (next === null || next === 'viewer') await endListedKeys(db, teamId, user.userId);
  if (role === 'admin' && next !== 'admin') await deleteInvitations(db, teamId);
}

async function changeMember(
  { credentials, db }: Deps,
  team: TeamRecord,
  userId: string,
  staysAdmin: boolean,
  change: (db: Db, member: MemberRecord) => Promise<void>,
): Promise<MemberRecord> {
  const before = await inTransaction(db, async db => {
    await lockTeam(db, team.teamId);
    const members = await listMembers(db, team.teamId);
    const member = members.find(({ user }) => user.userId === userId);
    if (!member) throw new AtollError('not_found', `There is no member ${userId} in this team`);
    const isLastAdmin = members.every(({ role, user }) => role !== 'admin' || user.userId === userId);
    if (member.role === 'admin' && isLastAdmin && !staysAdmin)
      throw new AtollError(
        'conflict',
        `${member.user.name} is the only admin of the team: make somebody else one first`,
      );
    await change(db, member);
    return member;
  });
  credentials.clear();
  return before;
}
